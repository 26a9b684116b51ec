"""Note: why the kernel last refused something.

`return refuse(kernel.note, Status.NOMEM, f"arena: {n} bytes needed, {left} left")` keeps the text's number and the
figures here and gives the Status. The host words it.
"""

from synapticos.lang import *
from synapticos.kernel.status import Status

NOTES = param(u32, 1, max=1)  # 0: a refusal gives its Status and keeps nothing
NOTE_ARGS = param(u32, 4, min=1, max=4)  # figures that are kept


@struct
class Note:
    code: i32  # the Status; 0: nothing was refused yet
    text: u32  # number of the text
    args: Shaped[Array[u64], NOTE_ARGS]  # signed figures in two's complement; unused entries 0
    count: u32  # figures in use
    reserved: u32

    @fn(inline=True)
    def keep(self, i: u32, figure: u64) -> None:
        if i < NOTE_ARGS:
            self.args[i] = figure

    @fn
    def refuse(self, status: Status, text: u32, count: u32, a: u64, b: u64, c: u64, d: u64) -> Status:
        """Keep a refusal, over the one before, and give its Status."""
        if NOTES == 0:
            return status
        self.code = i32(status)
        self.text = text
        self.count = min(count, NOTE_ARGS)
        self.keep(0, a)
        self.keep(1, b)
        self.keep(2, c)
        self.keep(3, d)
        return status
