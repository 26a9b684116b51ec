"""a set comprehension"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = {i for i in range(3)}  #! a set comprehension is not part of kernel-Python
