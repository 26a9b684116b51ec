"""not in"""

from synapticos.lang import *

@fn
def f(a: u32):
    if a not in a:  #! not in is not yet part of kernel-Python
        pass
