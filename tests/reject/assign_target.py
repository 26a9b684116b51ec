"""what cannot be assigned to"""

from synapticos.lang import *

@struct
class Job:
    id: u32
    prio: u8
    data: Shaped[Array[u8], 4]
    grid: Shaped[Array[i8], 2, 3]

TABLE = rom(u8, [1, 2])

@fn
def f(job: Job, p: Ptr[u8]):
    p[1:] = 3  #! p[1:] cannot be assigned to
    job.data = p  #! job.data is a u8[4], which is not assigned but copied
    TABLE[0] = 3  #! TABLE is a rom table
    TABLE[1] += 3  #! TABLE is a rom table
    fill(TABLE, 0, 2)  #! TABLE is a rom table
    [p] = job  #! cannot be assigned to
