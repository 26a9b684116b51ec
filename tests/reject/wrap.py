"""wrap"""

from synapticos.lang import *

@fn
def f(a: u32, x: f32):
    b = wrap(f32, a)  #! wrap makes integers, not f32
    c = wrap(u32, x)  #! wrap takes integers, and this is f32
    d = wrap(u32, a + 1.5)  #! wrap takes integers, and this is f32
