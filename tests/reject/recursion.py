"""recursion"""

from synapticos.lang import *

@fn
def f(a: u32) -> u32:  #! recursion: f -> g -> f
    return g(a)

@fn
def g(a: u32) -> u32:
    return f(a)
