"""generic functions"""

from synapticos.lang import *

T = "T"

@fn
def f(a: Ptr[T]) -> u32:  #! is not a type of kernel-Python
    return 0
