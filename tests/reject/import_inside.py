"""import in a function"""

from synapticos.lang import *

@fn
def f(a: u32):
    import os  #! import in a function is not part of kernel-Python
    from os import path  #! import in a function is not part of kernel-Python
