"""for over anything but range() and arrays of structs"""

from synapticos.lang import *

@fn
def f(p: Ptr[u8]):
    for x in p:  #! for goes over range() and arrays of structs
        pass
