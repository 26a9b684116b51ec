"""a dict"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = {1: a}  #! a dict is not part of kernel-Python
