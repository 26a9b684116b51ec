"""fill of what is no number"""

from synapticos.lang import *

@struct
class Job:
    id: u32
    prio: u8
    data: Shaped[Array[u8], 4]
    grid: Shaped[Array[i8], 2, 3]

@fn
def f(jobs: Ptr[Job]):
    fill(jobs, 0, 3)  #! fill sets numbers, and this is Ptr[Job]
