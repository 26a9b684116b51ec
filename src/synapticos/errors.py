"""What a user did wrong, in one line: the thing, the fact and the way out. A traceback means a bug of ours.

Imports nothing, so that every folder may use it.
"""


class UserError(Exception):
    """Bad input. Its text is one line; the commands print it and end with status 2."""


class KernelError(UserError):
    """The kernel refused. `status` is the kernel's (negative) number."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status
