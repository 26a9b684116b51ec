"""returning what ends"""

from synapticos.lang import *

@fn
def f() -> Ptr[u8]:
    b = local(u8, 4)
    return b  #! b ends with this function
