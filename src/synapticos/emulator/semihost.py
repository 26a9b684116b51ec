"""Semihosting: what a firmware asks of its host by a breakpoint. Files are those of a folder, or kept in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

MODES = ("rb", "rb", "r+b", "r+b", "wb", "wb", "w+b", "w+b", "ab", "ab", "a+b", "a+b")  # r, rb, r+, r+b, ...
FAILED = 0xFFFFFFFF


class Memory(io.BytesIO):
    """A file that exists only here: closing it leaves its bytes in `files`."""

    def __init__(self, files: dict[str, bytes], name: str, mode: str) -> None:
        super().__init__(b"" if mode[0] == "w" else files.get(name, b""))
        self._files, self._name, self._writes = files, name, mode != "rb"
        if mode[0] == "a":
            self.seek(0, io.SEEK_END)
        if self._writes:
            files[name] = self.getvalue()

    def close(self) -> None:
        if not self.closed and self._writes:
            self._files[self._name] = self.getvalue()
        super().close()


class Exit(Exception):
    """The firmware has ended."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Semihost:
    """The calls, by number. `read` and `write` reach the firmware's memory."""

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        write: Callable[[int, bytes], None],
        put: Callable[[int], None],
        *,
        argument: str = "",
        files: Mapping[str, bytes] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._read, self._write, self._put = read, write, put
        self._line = ("img " + argument if argument else "img").encode()
        self.files: dict[str, bytes] | None = None if files is None else dict(files)
        self._folder = Path(folder) if folder is not None else Path()
        self._open: dict[int, IO[bytes]] = {}
        self._next = 1
        self._errno = 0

    def close(self) -> None:
        """Close what the firmware left open."""
        for file in self._open.values():
            file.close()
        self._open.clear()

    def _words(self, block: int, n: int) -> list[int]:
        raw = self._read(block, 4 * n)
        return [int.from_bytes(raw[i : i + 4], "little") for i in range(0, 4 * n, 4)]

    def call(self, what: int, block: int) -> int:
        """Do call number `what`: the value for r0. Raises Exit; IndexError if the firmware gave a wrong address."""
        try:
            return self._call(what, block) & 0xFFFFFFFF
        except OSError as error:
            self._errno = error.errno or 5
            return FAILED

    def _call(self, what: int, block: int) -> int:
        if what == 0x01:
            name, mode, n = self._words(block, 3)
            return self._file(self._read(name, n).decode("utf-8", "surrogateescape"), mode)
        if what == 0x02:
            file = self._open.pop(self._words(block, 1)[0], None)
            if file is None:
                return FAILED
            file.close()
            return 0
        if what == 0x03:
            self._put(self._read(block, 1)[0])
            return 0
        if what == 0x04:
            while byte := self._read(block, 1)[0]:
                self._put(byte)
                block += 1
            return 0
        if what in (0x05, 0x06):
            handle, address, n = self._words(block, 3)
            file = self._open.get(handle)
            if file is None:
                return n
            if what == 0x05:
                return n - file.write(self._read(address, n))
            data = file.read(n)
            self._write(address, data)
            return n - len(data)
        if what == 0x0A:
            handle, at = self._words(block, 2)
            file = self._open.get(handle)
            return FAILED if file is None else (file.seek(at), 0)[1]
        if what == 0x0C:
            file = self._open.get(self._words(block, 1)[0])
            if file is None:
                return FAILED
            at = file.tell()
            size = file.seek(0, io.SEEK_END)
            file.seek(at)
            return size
        if what == 0x13:
            return self._errno
        if what == 0x15:
            address, room = self._words(block, 2)
            if len(self._line) + 1 > room:
                return FAILED
            self._write(address, self._line + b"\0")
            self._write(block + 4, len(self._line).to_bytes(4, "little"))
            return 0
        if what == 0x18:
            raise Exit(0 if block == 0x20026 else 1)
        if what == 0x20:
            reason, code = self._words(block, 2)
            raise Exit(code & 0xFF if reason == 0x20026 else 1)
        return FAILED

    def _file(self, name: str, mode: int) -> int:
        how = MODES[mode] if mode < len(MODES) else "rb"
        file: IO[bytes]
        if self.files is None:
            file = open(self._folder / name, how)  # noqa: SIM115
        elif how[0] == "r" and name not in self.files:
            raise FileNotFoundError(2, "no such file", name)
        else:
            file = Memory(self.files, name, how)
        handle = self._next
        self._next += 1
        self._open[handle] = file
        return handle
