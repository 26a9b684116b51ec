"""a struct as a value"""

from synapticos.lang import *

@struct
class Job:
    id: u32
    prio: u8
    data: Shaped[Array[u8], 4]
    grid: Shaped[Array[i8], 2, 3]

@fn
def f(job: Job, other: Job, p: Ptr[u8], q: Ptr[u16], x: Ptr[f32], y: Ptr[u64], a: u32):
    if job == other:  #! Job == Job has no meaning
        pass
    copy(job, p)  #! copy(Job, Ptr[u8]) has no meaning
    move(p, q, 3)  #! move(Ptr[u8], Ptr[u16]) mixes elements
    fill(job, 0, 3)  #! a pointer or array is wanted, and this is Job
    n = len(p)  #! Ptr[u8] has no length
    v = view(u8, a)  #! view needs memory, and this is u32
    w = view(bool | None, p)  #! bool is not a reference
    ok = aligned(p, a)  #! an alignment is a constant power of two
    mine = local(Job)
    mine = job  #! mine is memory of this function and cannot become another
    shared = load_acquire(x)  #! f32 is not read or written at once on every chip
    store_release(y, 1)  #! u64 is not read or written at once on every chip
