/* An accelerator that only keeps the time, for boards whose time moves when it is moved: its driver does the work. */
#ifndef SYN_COUNTING_H
#define SYN_COUNTING_H

#include "hal.h"

typedef struct {
    uint32_t started; /* and not reset */
    uint32_t ticket;
    uint32_t since, ticks;
    uint32_t lost; /* for tests: it never ends */
    int32_t fails; /* for tests: how it ends */
    uint32_t told; /* a sleeper was woken */
} counting_npu;

static inline int32_t counting_status(const volatile counting_npu *npu, uint32_t now, uint32_t ticket) {
    if (!npu->started || npu->ticket != ticket)
        return HAL_NOENT;
    if (npu->lost || now - npu->since < npu->ticks)
        return HAL_INPROGRESS;
    return npu->fails;
}

/* Ticks until it is done; many if it is at nothing, or was found to be done by this function before. */
static inline int32_t counting_left(volatile counting_npu *npu, uint32_t now) {
    if (!npu->started || npu->lost || npu->told)
        return INT32_MAX;
    npu->told = now - npu->since >= npu->ticks;
    return npu->told ? 0 : (int32_t)(npu->ticks - (now - npu->since));
}

static inline int32_t counting_start(volatile counting_npu *npu, uint32_t now, uint32_t ticket, uint32_t ticks) {
    if (counting_status(npu, now, npu->ticket) == HAL_INPROGRESS)
        return HAL_BUSY;
    npu->started = 1;
    npu->told = 0;
    npu->ticket = ticket;
    npu->since = now;
    npu->ticks = ticks;
    return 0;
}

#endif
