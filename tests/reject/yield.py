"""yield"""

from synapticos.lang import *

@fn
def f(a: u32):
    yield a  #! yield is not part of kernel-Python
