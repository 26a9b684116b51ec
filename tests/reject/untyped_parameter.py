"""a parameter without a type"""

from synapticos.lang import *

@fn
def f(a):  #! a has no type
    pass
