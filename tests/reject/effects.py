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
def f(job: Job) -> u32:
    a = g(job) + g(job)  #! two calls with effects in one statement
    b = job.id + g(job)  #! memory is read beside a call that may write it
    if job.id == 1 and g(job) + g(job) == 2:  #! two things with effects in one operand
        return 1
    return 0
