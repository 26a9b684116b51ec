"""changing a global"""

from synapticos.lang import *

COUNT = 3

@fn
def f(a: u32):
    COUNT += a  #! COUNT is not a local
