"""a literal without a width"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = 3  #! b has no width: 3 is a bare literal
    c = 1 if a == 2 else 5  #! c has no width
    d = 1.5  #! d has no width
