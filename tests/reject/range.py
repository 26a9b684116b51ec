"""range"""

from synapticos.lang import *

@fn
def f(a: u32, x: f32):
    for i in range(0, a, a):  #! the step of a range is a constant
        pass
    for j in range(0, a, 0):  #! a step of 0 never ends
        pass
    for k in range(x):  #! range counts in integers, not f32
        pass
    for a in range(3):  #! a exists already
        pass
