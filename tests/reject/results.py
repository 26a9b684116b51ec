"""results of calls"""

from synapticos.lang import *

@struct
class Job:
    id: u32
    prio: u8
    data: Shaped[Array[u8], 4]
    grid: Shaped[Array[i8], 2, 3]

@fn
def pair(a: u32) -> tuple[u32, u32]:
    return a, a

@fn
def nothing(a: u32):
    pass

@fn
def f(job: Job, a: u32, s: i32):
    b = nothing(a)  #! this call has no result
    c = pair(a)  #! this call has 2 results
    d, e = a  #! this is one value, u32
    g, h, k = pair(a)  #! the call has 2 results, and 3 names wait for them
    job.id, m = pair(a)  #! results are bound to locals
    s, n = pair(a)  #! s is i32, and this result is u32
    a + 1  #! this value goes nowhere
    min(a, 1)  #! this value goes nowhere
    ignore(a)  #! only a call is ignored
