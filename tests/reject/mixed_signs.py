"""operands that no wider type holds"""

from synapticos.lang import *

@fn
def f(a: u32, b: i32, x: f32):
    c = a + b  #! u32 + i32 has no type: the operands differ in sign
    if a < b:  #! u32 < i32 has no type
        pass
    d = a + x  #! u32 + f32 has no type: neither holds the other
    e = a / 256.0  #! 256.0 is not an integer, and u32 is wanted
    g = 0.5 * b  #! 0.5 is not an integer, and i32 is wanted
    e = min(a, b)  #! min(u32, i32) has no type
