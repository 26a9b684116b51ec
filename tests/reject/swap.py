"""a, b = x, y"""

from synapticos.lang import *

@fn
def f(a: u32, b: u32):
    a, b = b, a  #! a, b = x, y is not part of kernel-Python
