"""operators of floats"""

from synapticos.lang import *

@fn
def f(x: f32):
    b = x // x  #! f32 // f32 has no meaning
    c = x & x  #! f32 & f32 has no meaning
    d = ~x  #! ~ of f32 has no meaning
