"""calls through what is no table"""

from synapticos.lang import *

@fn
def f(p: Ptr[u32], a: u32):
    b = p[a](a)  #! only a table() of functions is called through an index
    c = a(3)  #! a is a local, not a function
    d = (lambda: 3)()  #! lambda is not part of kernel-Python
