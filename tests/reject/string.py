"""strings"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = "x"  #! str is not part of kernel-Python
