"""int and float"""

from synapticos.lang import *

@fn
def f(a: int):  #! int has no width
    pass

@fn
def g(a: float):  #! float has no width
    pass
