"""statements that are never reached"""

from synapticos.lang import *

@fn
def f(a: u32):
    return
    a = 3  #! this is never reached
