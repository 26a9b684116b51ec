"""a generator"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = max(i for i in range(3))  #! max takes 2 arguments
