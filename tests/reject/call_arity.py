"""arguments of a call"""

from synapticos.lang import *

@fn
def g(a: u32) -> u32:
    return a

@fn
def f(a: u32):
    b = g(a, a)  #! g takes 1 argument, and 2 are given
