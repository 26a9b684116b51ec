"""a range() step that is not constant"""

from synapticos.lang import *

@fn
def f(a: u32):
    for i in range(0, a, a):  #! the step of a range is a constant
        pass
