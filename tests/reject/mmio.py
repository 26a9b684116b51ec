"""mmio(...)"""

from synapticos.lang import *

@fn
def f() -> u32:
    return mmio(u32, 0x40000000)  #! mmio is not defined
