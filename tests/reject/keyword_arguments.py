"""keyword arguments"""

from synapticos.lang import *

@fn
def g(a: u32) -> u32:
    return a

@fn
def f(a: u32) -> u32:
    return g(a=a)  #! keyword arguments are not yet part of kernel-Python
