"""*args, **kwargs"""

from synapticos.lang import *

@fn
def f(*a: u32):  #! f has default, keyword or starred arguments
    pass
