"""bool(...)"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = bool(a)  #! bool(...) hides a comparison
