"""signed 64-bit division"""

from synapticos.lang import *

@fn
def f(a: i64):
    b = div_trunc(a, 3)  #! div_trunc of i64 has no meaning
