"""a loop variable of two types"""

from synapticos.lang import *

@struct
class Job:
    id: u32
    prio: u8
    data: Shaped[Array[u8], 4]
    grid: Shaped[Array[i8], 2, 3]

@fn
def f(a: u32, jobs: Ptr[Job], b: u64):
    if a == 1:
        i: u8 = 3
        a = i
    for i in range(b):  #! i is u8 in this function, and here u64
        pass
    for j in range(a):
        pass
    for j in jobs[:a]:  #! j is u32 in this function
        pass
