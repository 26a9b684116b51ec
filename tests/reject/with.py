"""with"""

from synapticos.lang import *

@fn
def f(a: u32):
    with open("x"):  #! with is not part of kernel-Python
        pass
