"""in"""

from synapticos.lang import *

@fn
def f(a: u32):
    if a in a:  #! in is not yet part of kernel-Python
        pass
