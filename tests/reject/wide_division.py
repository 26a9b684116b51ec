"""division in 64 bits"""

from synapticos.lang import *

@fn
def f(a: u64, s: i64):
    b = a // 2  #! // of u64 is a library routine
    c = a % 2  #! % of u64 is a library routine
    d = div_floor(s, 2)  #! div_floor of i64 has no meaning
