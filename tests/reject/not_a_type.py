"""annotations that are no types"""

from synapticos.lang import *

class Plain:
    pass

@fn
def f(a: Plain):  #! Plain is not a type of kernel-Python
    pass

@fn
def g(a: list):  #! list is not a type of kernel-Python
    pass

@fn
def h(a: "Nowhere"):  #! this annotation cannot be read
    pass

@fn
def k(a: Array[u8]):  #! has no length
    pass

@fn
def m(a: u32 | None):  #! u32 is not a reference
    pass
