"""a path without a result"""

from synapticos.lang import *

@fn
def f(a: u32) -> u32:  #! f may end without a result
    if a == 1:
        return 2

@fn
def g(a: u32) -> u32:
    return  #! g returns u32

@fn
def h(a: u32):
    return a  #! h has no result

@fn
def k(a: u32) -> tuple[u32, u32]:
    return a  #! k returns tuple[u32, u32], and 1 value is given
