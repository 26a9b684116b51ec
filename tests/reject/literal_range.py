"""literals that do not fit"""

from synapticos.lang import *

@struct
class Long:
    data: Shaped[Array[u8], 300]

@fn
def f(a: u32, long: Long):
    b: u8 = 256  #! 256 does not fit u8
    c: u32 = -1  #! -1 does not fit u32
    d = a + 4294967296  #! 4294967296 does not fit u32
    e = u8(300)  #! 300 does not fit u8
    g: u32 = 1.5  #! 1.5 is not an integer
    h = i16(i32(70000))  #! 70000 does not fit i16
    m: u8 = len(long.data)  #! the length 300 does not fit u8
    k: u32 = 1 // 0  #! this constant has no value
