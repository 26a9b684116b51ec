"""None"""

from synapticos.lang import *

@struct
class Job:
    id: u32
    prio: u8
    data: Shaped[Array[u8], 4]
    grid: Shaped[Array[i8], 2, 3]

@fn
def f(job: Job | None, other: Job, p: Ptr[u8] | None) -> u32:
    a = job.id  #! job may be None here
    q = p[0]  #! p may be None here
    if other is None:  #! Job is never None
        return 1
    if other is other:  #! `is` is for None only
        return 1
    b = None  #! None has no type here
    if job is not None:
        job = None
        return job.id  #! job may be None here
    return 0

@fn
def g(job: Job | None) -> Job:
    return job  #! Job | None does not become Job by itself
