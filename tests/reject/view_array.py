"""view as an array"""

from synapticos.lang import *

@fn
def f(p: Ptr[u8]):
    v = view(Shaped[Array[u8], 4], p)  #! view cannot see u8[4]
