"""local(...) by name"""

from synapticos.lang import *


@fn
def f():
    b = local(u8, 4, clear=True)  #! local(...) takes zero=False, and nothing else by name
    c = local(u8, count=4)  #! local(...) takes zero=False, and nothing else by name
