"""global"""

from synapticos.lang import *

@fn
def f(a: u32):
    global COUNT  #! global is not part of kernel-Python
    ignore(a)  #! only a call is ignored
