"""**"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = a ** 2  #! ** is not part of kernel-Python
