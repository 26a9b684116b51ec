"""yield from"""

from synapticos.lang import *

@fn
def f(a: u32):
    yield from a  #! yield from is not part of kernel-Python
