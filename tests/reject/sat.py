"""sat"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = sat(f32, a)  #! sat(f32, u32) has no meaning
    c = sat(u8, a == 1)  #! sat(u8, bool) has no meaning
