"""try"""

from synapticos.lang import *

@fn
def f(a: u32):
    try:  #! try is not part of kernel-Python
        a = 1
    except ValueError:
        a = 2
