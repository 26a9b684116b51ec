"""a declaration without a value"""

from synapticos.lang import *

@fn
def f(a: u32):
    b: u32  #! b has no value
