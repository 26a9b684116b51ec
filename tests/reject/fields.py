"""fields and methods"""

from synapticos.lang import *

@struct
class Ring:
    head: u32

    @fn
    def size(self) -> u32:
        return self.head

@fn
def f(ring: Ring, a: u32):
    b = ring.tail  #! Ring has no field tail
    c = a.head  #! u32 has no fields
    d = ring.size  #! size is a method
    e = ring.push()  #! Ring has no method push
    g = Ring()  #! a Ring is not made by a call
