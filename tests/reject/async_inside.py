"""async"""

from synapticos.lang import *

@fn
def f(a: u32):
    async def g():  #! async is not part of kernel-Python
        pass
