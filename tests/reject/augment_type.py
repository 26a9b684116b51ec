"""an augmented assignment that narrows"""

from synapticos.lang import *

@fn
def f(a: u32, b: u8):
    b += a  #! u8 += u32 does not fit
