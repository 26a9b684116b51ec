"""text"""

from synapticos.lang import *

from synapticos.kernel.log import Log
from synapticos.kernel.note import Note
from synapticos.kernel.status import Status

@fn
def f(log_: Log, note: Note, a: u32, x: f32) -> Status:
    console.print(a)  #! text here is a string or an f-string
    console.print(f"{x}")  #! a message holds integers, bools and enums, and this is f32
    console.print(f"{a:.3}")  #! the format '.3' is not part of kernel-Python
    console.print(f"{a!r}")  #! a value of a message is converted by nothing
    log.debug(log_, f"{a:{a}}")  #! a value of a message is converted by nothing
    log.info(log_, f"{a}{a}{a}{a}{a}")  #! a message holds four values, and this has 5
    assert a == 0, f"a is {a}"  #! the text of an assert is a plain string
    log.loud(log_, "x")  #! log.loud is no level
    return refuse(note, Status.NOMEM, f"{x}")  #! a message holds integers, bools and enums, and this is f32
