"""two functions of one C name"""

from synapticos.lang import *

@struct
class Job:
    id: u32

    @fn
    def run(self) -> u32:  #! two functions are job_run in C
        return self.id

@fn
def job_run(a: u32) -> u32:
    return a
