"""a local of two types"""

from synapticos.lang import *

@fn
def f(a: u32):
    if a == 1:
        b: u32 = 2
    else:
        b: i32 = 2  #! b is u32 in this function, and here i32
