""":="""

from synapticos.lang import *

@fn
def f(a: u32):
    if (b := a) != 0:  #! := is not yet part of kernel-Python
        pass
