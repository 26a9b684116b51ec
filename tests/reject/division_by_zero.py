"""division by a zero that is known"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = a // 0  #! this divides by zero
    c = div_trunc(a, 0)  #! this divides by zero
