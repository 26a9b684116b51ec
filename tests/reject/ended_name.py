"""a local outside its block"""

from synapticos.lang import *

@fn
def f(a: u32):
    if a == 1:
        b: u32 = 2
    a = b  #! b does not exist here
