"""assigning a loop variable"""

from synapticos.lang import *

@fn
def f(a: u32):
    for i in range(a):
        i = 3  #! i is the variable of a loop
        i += 1  #! i is the variable of a loop
