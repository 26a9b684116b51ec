"""a class in a function"""

from synapticos.lang import *

@fn
def f(a: u32):
    class X:  #! a class in a function is not part of kernel-Python
        pass
