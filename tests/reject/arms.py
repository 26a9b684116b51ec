"""arms of a conditional expression"""

from synapticos.lang import *

@fn
def f(a: u32, s: i32):
    b = a if a == 1 else s  #! the arms differ: u32 and i32
