"""default arguments"""

from synapticos.lang import *

@fn
def f(a: u32 = 3):  #! f has default, keyword or starred arguments
    pass
