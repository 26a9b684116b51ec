"""await, async for, async with"""

from synapticos.lang import *

@fn
async def f(a: u32):  #! async is not part of kernel-Python
    await a
    async for i in a:
        pass
    async with a:
        pass
