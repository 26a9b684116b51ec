"""the order of effects"""

from synapticos.lang import *

@struct
class Job:
    id: u32
    prio: u8
    data: Shaped[Array[u8], 4]
    grid: Shaped[Array[i8], 2, 3]

@fn
def g(job: Job) -> u32:
    job.id += 1
    return job.id

@fn
def f(job: Job, t: bool) -> u32:
    a = g(job) + g(job)  #! two calls with effects in one statement
    b = job.id + g(job)  #! memory is read beside a call that may write it
    c = g(job) + (job.id if t else 0)  #! memory is read beside a call that may write it
    d = (job.id if t else 0) + g(job)  #! memory is read beside a call that may write it
    e = g(job) + (g(job) if t else 0)  #! two calls with effects in one statement
    h = plus(g(job), 1)  #! a call with effects is an argument of another
    if job.id == 1 and g(job) + g(job) == 2:  #! two calls with effects in one statement
        return 1
    return 0

@fn
def plus(a: u32, b: u32) -> u32:
    fence()
    return a + b
