"""Python objects"""

from synapticos.lang import *

import os

TEXT = "x"

@fn
def g(a: u32) -> u32:
    return a

@fn
def f(a: u32):
    b = TEXT  #! TEXT is a Python str, which kernel-Python cannot use
    c = g  #! g is a function, not a value
    d = os.nothing  #! os has no nothing
    e = os.getpid()  #! os.getpid is plain Python
    h = print(a)  #! print is plain Python
