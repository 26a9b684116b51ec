"""conditions that are not bools"""

from synapticos.lang import *

@fn
def f(a: u32):
    if a:  #! a condition is a bool, and this is u32
        pass
    while a and a != 1:  #! a condition is a bool, and this is u32
        pass
