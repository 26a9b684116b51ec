"""pure functions that write"""

from synapticos.lang import *

@struct
class Job:
    id: u32

@fn(pure=True)
def f(job: Job) -> u32:  #! f is declared pure and writes memory
    job.id = 3
    return 3
