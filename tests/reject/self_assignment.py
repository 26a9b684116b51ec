"""a = a"""

from synapticos.lang import *

@fn
def f(a: u32):
    a = a  #! a is assigned to itself
