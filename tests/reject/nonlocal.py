"""nonlocal, a function in a function"""

from synapticos.lang import *

@fn
def f(a: u32):
    def g():  #! a function in a function is not part of kernel-Python
        nonlocal a
