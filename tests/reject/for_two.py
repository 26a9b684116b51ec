"""two loop variables"""

from synapticos.lang import *

@fn
def f(p: Ptr[u8]):
    for i, x in p:  #! a loop has one variable here
        pass
