"""Several results, Status, check."""

from synapticos.lang import *


class Status(i32, Enum):
    OK = 0
    INVAL = -22
    NOMEM = -12


@struct
class Pool:
    used: u32
    size: u32

    @fn
    def take(self, n: u32) -> tuple[Status, u32]:
        """Hand out `n`: where they begin."""
        if n == 0:
            return Status.INVAL, 0
        if n > self.size - self.used:
            return Status.NOMEM, 0
        at = self.used
        self.used += n
        return Status.OK, at

    @fn
    def find(self, n: u32) -> Status:
        if n > self.size:
            return Status.INVAL
        return Status.OK


@fn
def two(pool: Pool, n: u32) -> tuple[Status, u32, u32]:
    check(pool.find(n))
    a = check(pool.take(n))
    status, b = pool.take(n)
    if status != Status.OK:
        return status, 0, 0
    ignore(pool.take(1))
    _, b = pool.take(1)
    return Status.OK, a, b
