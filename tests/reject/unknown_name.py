"""unknown names"""

from synapticos.lang import *

@fn
def f(a: u32):
    b = a + unknown  #! unknown is not defined
