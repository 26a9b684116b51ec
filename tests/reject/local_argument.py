"""local(...) as an argument"""

from synapticos.lang import *

@fn
def g(p: Ptr[u8]):
    p[0] = 1

@fn
def f():
    g(local(u8, 4))  #! local(...) begins a local of its own
