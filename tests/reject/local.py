"""local(...)"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = local(u8, a)  #! the length of a local array is a constant
    c = local(u8)  #! local(u8) is a variable
