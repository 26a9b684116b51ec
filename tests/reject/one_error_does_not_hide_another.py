"""all errors of a file are collected"""

from synapticos.lang import *

@fn
def f(a: u32, b: i32) -> u32:
    if a:  #! a condition is a bool
        c = a + b  #! u32 + i32 has no type
    d = c
    for i in range(x):  #! x is not defined
        b = a  #! u32 does not become i32 by itself
    d += 1
    e = unknown(a)  #! unknown is not defined
    return e + d + 1.5

@fn
def g(a: u32) -> u8:
    return a  #! u32 does not become u8 by itself
