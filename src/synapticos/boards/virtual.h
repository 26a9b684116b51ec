/* Time that moves when it is moved, for the boards that have no clock of their own, and the interrupts of devices that
   are not there: each line calls a function of the host's choice when its time comes. */
#ifndef SYN_VIRTUAL_H
#define SYN_VIRTUAL_H

#include <stdint.h>

enum { VIRTUAL_LINES = 4 };

typedef struct {
    uint32_t armed;
    uint32_t at; /* the counter then */
    void (*handler)(void *); /* NULL: nobody listens */
    void *block; /* its argument */
} virtual_line;

/* Let `ticks` pass (below 2^31). An interrupt that is due before they are over comes at its time, once, the lowest line
   first among equals; what it spends itself is on top, as if it had been taken from whatever ran. One that is due when
   they are over comes with the next ticks, or with none: 0 only takes what is due. */
static inline void virtual_spend(volatile uint32_t *clock, virtual_line *lines, uint32_t ticks) {
    uint32_t none = ticks == 0;
    for (;;) {
        virtual_line *next = 0;
        uint32_t wait = ticks;
        for (uint32_t i = 0; i < VIRTUAL_LINES; i++) {
            int32_t left = (int32_t)(lines[i].at - *clock);
            uint32_t after = left > 0 ? (uint32_t)left : 0;
            if (lines[i].armed && (after < wait || (none && after == 0 && next == 0))) {
                next = &lines[i];
                wait = after;
            }
        }
        *clock += wait;
        ticks -= wait;
        if (next == 0)
            return;
        next->armed = 0;
        if (next->handler != 0)
            next->handler(next->block);
    }
}

static inline void virtual_at(virtual_line *lines, uint32_t line, uint32_t at) {
    lines[line % VIRTUAL_LINES].at = at;
    lines[line % VIRTUAL_LINES].armed = 1;
}

#endif
