"""narrowing"""

from synapticos.lang import *

@fn
def f(a: u32):
    b: u8 = a  #! u32 does not become u8 by itself
    c: f32 = a  #! u32 does not become f32 by itself
