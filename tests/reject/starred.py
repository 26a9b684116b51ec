"""*"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = max(*a)  #! max takes 2 arguments
