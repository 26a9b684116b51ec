"""a generator"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = u32(i for i in range(3))  #! a generator is not part of kernel-Python
