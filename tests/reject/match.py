"""match"""

from synapticos.lang import *

@struct
class Job:
    id: u32


class State(u8, Enum):
    FREE = 0
    BUSY = 1

@fn
def f(s: State, a: u32, x: f32, job: Job):
    match x:  #! match is on integers and enums, not f32
        case _:
            pass
    match a:
        case 1 if a == 2:  #! a case has no condition here
            pass
    match a:
        case a_:  #! a case is a constant, or _
            pass
    match a:
        case -1:  #! -1 does not fit u32
            pass
    match a:
        case job.id:  #! a case is a constant, or _
            pass
    match a:
        case [b]:  #! a case is a constant, or _
            pass
    match a:
        case 1 | 1:  #! this case is there already
            pass
