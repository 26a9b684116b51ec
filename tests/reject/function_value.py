"""functions handed to a board"""

from synapticos.lang import *

Work = Fn[[Ptr[u8]], None]

@hal_function
def run(board: u32, work: Work) -> None: ...

@fn
def other(block: Ptr[u16]) -> None:
    block[0] = 1

@fn
def f(p: Ptr[u8]) -> None:
    run(0, other)  #! other is (Ptr[u16]) -> None, and Fn[[Ptr[u8]], None] is wanted
    run(0, p)  #! a function is wanted, and this is p
