"""a dict comprehension"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = {i: i for i in range(3)}  #! a dict comprehension is not part of kernel-Python
