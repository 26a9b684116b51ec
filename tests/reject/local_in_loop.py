"""local(...) in a loop"""

from synapticos.lang import *

@fn
def f(a: u32):
    for i in range(a):
        buffer = local(u8, 4)  #! local(...) in a loop is not yet part of kernel-Python
