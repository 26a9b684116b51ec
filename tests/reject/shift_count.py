"""shift counts"""

from synapticos.lang import *

@fn
def f(a: u32, s: i32, n: u32):
    b = a << s  #! a shift count is unsigned, and this is i32
    c = a << 32  #! a shift by 32 is outside u32
    d = a >> max(n, 64)  #! a shift by 64 or more is outside u32
    e = wrap(u32, a << s)  #! a shift count is unsigned, and this is i32
    g = wrap(u32, a << 40)  #! a shift by 40 is outside u32
