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
    uint32_t starts; /* how often it has begun; wraps */
} counting_npu;

static inline int32_t counting_status(const volatile counting_npu *npu, uint32_t now, uint32_t ticket) {
    if (!npu->started || npu->ticket != ticket)
        return HAL_NOENT;
    if (npu->lost || now - npu->since < npu->ticks)
        return HAL_INPROGRESS;
    return npu->fails;
}

/* Ticks until it is done; many if it is at nothing, or was found to be done with this `told` before: what one sleeper keeps. */
static inline int32_t counting_left(const volatile counting_npu *npu, uint32_t now, uint32_t *told) {
    if (!npu->started || npu->lost || *told == npu->starts)
        return INT32_MAX;
    const uint32_t passed = now - npu->since;
    if (passed < npu->ticks)
        return (int32_t)(npu->ticks - passed);
    *told = npu->starts;
    return 0;
}

static inline int32_t counting_start(volatile counting_npu *npu, uint32_t now, uint32_t ticket, uint32_t ticks) {
    if (counting_status(npu, now, npu->ticket) == HAL_INPROGRESS)
        return HAL_BUSY;
    npu->started = 1;
    npu->starts++;
    npu->ticket = ticket;
    npu->since = now;
    npu->ticks = ticks;
    return 0;
}

#endif
