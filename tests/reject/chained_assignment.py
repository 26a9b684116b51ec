"""a = b = c"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = a = 3  #! a = b = c is not part of kernel-Python
