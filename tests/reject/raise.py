"""raise"""

from synapticos.lang import *

@fn
def f(a: u32):
    raise ValueError  #! raise is not part of kernel-Python
