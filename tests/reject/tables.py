"""tables of functions"""

from synapticos.lang import *

Step = Fn[[u32], u32]

@fn
def g(a: u32) -> u32:
    return a

@fn
def h(a: i32) -> u32:  #! h is (i32) -> u32, and STEPS holds Fn[[u32], u32]
    return 1

STEPS = table(Step, [g, h])

@fn
def f(a: u32) -> u32:
    return STEPS[a](a)
