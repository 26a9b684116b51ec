"""enums"""

from synapticos.lang import *

class State(u8, Enum):
    FREE = 0
    BUSY = 1

@fn
def f(s: State, a: u32):
    if s < State.BUSY:  #! members of State have no order
        pass
    if s == 1:  #! 1 is a number, and a State is wanted
        pass
    t: State = 1  #! 1 is a number, and a State is wanted
    u = State(a == 1)  #! State(...) takes a number, and this is bool
    v = s + s  #! State + State has no meaning
