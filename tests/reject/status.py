"""Status"""

from synapticos.lang import *

class Status(i32, Enum):
    OK = 0
    NOMEM = -12

@fn
def run(a: u32) -> Status:
    return Status.OK

@fn
def find(a: u32) -> tuple[Status, u32]:
    return Status.OK, a

@fn
def number(a: u32) -> u32:
    return a

@fn
def f(a: u32) -> Status:
    run(a)  #! this Status is not looked at
    b = check(number(a))  #! check takes a call whose first result is a Status
    c, d = check(find(a))  #! the call has 1 result beside its Status, and 2 names wait for them
    e: i32 = check(find(a))  #! this result is u32, and i32 is written
    g = 1 + check(find(a))  #! check(...) is a statement, or the whole right side
    return Status.OK

@fn
def h(a: u32) -> u32:
    check(run(a))  #! check hands a Status on, and h returns u32
    return 3
