"""a tuple"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = (a, a)  #! Tuple is not part of kernel-Python
