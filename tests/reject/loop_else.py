"""for/while ... else"""

from synapticos.lang import *

@fn
def f(a: u32):
    for i in range(a):
        pass
    else:
        a = 1  #! a loop has no else here
