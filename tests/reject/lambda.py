"""lambda"""

from synapticos.lang import *

@fn
def f(a: u32):
    g = lambda x: x  #! lambda is not part of kernel-Python
