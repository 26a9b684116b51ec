"""// and % on signed integers"""

from synapticos.lang import *

@fn
def f(a: i32):
    b = a // 2  #! // is for unsigned operands
    c = a % 2  #! % is for unsigned operands
