"""indices"""

from synapticos.lang import *

@struct
class Job:
    id: u32
    prio: u8
    data: Shaped[Array[u8], 4]
    grid: Shaped[Array[i8], 2, 3]

@fn
def f(job: Job, p: Ptr[u8], a: u32, x: f32):
    b = p[x]  #! an index is an integer, and this is f32
    c = p[-1]  #! an index is not negative
    d = a[0]  #! u32 cannot be indexed
    e = p[0:4:2]  #! a slice has no step here
    g = job.grid[1]  #! i8[2, 3] has 2 dimensions, and 1 are given
    h = job.grid[1:]  #! i8[2, 3] has 2 dimensions, and 1 are given
    k = job.data[4]  #! 4 is outside an array of 4
