"""inheritance of structs"""

from synapticos.lang import *

@struct
class Base:
    id: u32

@struct
class Derived(Base):
    more: u32

@fn
def f(d: Derived) -> u32:  #! Derived inherits from Base
    return d.id
