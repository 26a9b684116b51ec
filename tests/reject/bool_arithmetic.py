"""bool is not a number"""

from synapticos.lang import *

@fn
def f(b: bool):
    c = b + b  #! bool + bool has no meaning
    d = -b  #! - of bool has no meaning
    e = u32(b)  #! u32(...) takes a number, and this is bool
    g: bool = 1  #! 1 is not a bool
    if b < b:  #! bools have no order
        pass
    h = max(b, b)  #! max of bool has no meaning
