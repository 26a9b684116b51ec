"""abs"""

from synapticos.lang import *

@fn
def f(a: i32):
    b = abs(a)  #! abs is not yet part of kernel-Python
