"""*"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = u32(*a)  #! * is not part of kernel-Python
