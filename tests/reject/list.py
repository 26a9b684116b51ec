"""a list"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = [a]  #! a list is not part of kernel-Python
