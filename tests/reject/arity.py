"""numbers of arguments"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = min(a)  #! min takes 2 arguments, and 1 is given
    c = u8()  #! u8 takes 1 argument, and 0 are given
