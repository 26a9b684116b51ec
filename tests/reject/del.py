"""del"""

from synapticos.lang import *

@fn
def f(a: u32):
    del a  #! del is not part of kernel-Python
