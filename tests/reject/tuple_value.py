"""a tuple but as a result"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = (a, a)  #! a tuple but as a result is not part of kernel-Python
