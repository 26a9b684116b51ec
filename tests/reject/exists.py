"""a local that begins twice"""

from synapticos.lang import *

@fn
def f(a: u32):
    b: u32 = 2
    b: u32 = 3  #! b exists already
