"""an f-string"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = f"{a}"  #! an f-string is not part of kernel-Python
