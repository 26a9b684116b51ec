"""Status: what every kernel call answers. 0, or one of the published system's negative numbers."""

from synapticos.lang import *


class Status(i32, Enum):
    OK = 0
    PERM = -1
    NOENT = -2
    IO = -5
    AGAIN = -11
    NOMEM = -12
    ACCES = -13
    BUSY = -16
    EXIST = -17
    NODEV = -19
    INVAL = -22
    FBIG = -27
    NODATA = -61
    TIMEDOUT = -116
    INPROGRESS = -119
    ALREADY = -120
    MSGSIZE = -122
    NOTSUP = -134
    ILSEQ = -138
    CANCELED = -140
