"""chains of comparisons"""

from synapticos.lang import *

@fn
def f(a: u32):
    if a < a + 1 < 5:  #! a chain of comparisons has simple operands
        pass
