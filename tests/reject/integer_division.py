"""/ on integers"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = a / 2  #! / on integers has no meaning
