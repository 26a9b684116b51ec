"""@"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = a @ a  #! @ is not part of kernel-Python
