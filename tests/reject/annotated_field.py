"""an annotation on a field"""

from synapticos.lang import *

@struct
class Job:
    id: u32
    prio: u8
    data: Shaped[Array[u8], 4]
    grid: Shaped[Array[i8], 2, 3]

@fn
def f(job: Job):
    job.id: u32 = 3  #! only a local's first assignment has a type written
