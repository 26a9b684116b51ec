"""static of one number"""

from synapticos.lang import *

COUNT = static(u32)

@fn
def f() -> u32:
    return COUNT  #! COUNT is one u32, and storage is a struct or an array
