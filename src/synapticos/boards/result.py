"""Result: what a run of a firmware left behind, from whichever emulator ran it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Result:
    """A finished run. `code` is the firmware's exit code, or None if it did not end by itself; `reason` says why."""

    code: int | None
    text: str  # the console
    files: dict[str, bytes] = field(default_factory=dict)  # after the run, where it had files of its own
    reason: str = ""
    instructions: int = 0  # 0 if the emulator does not count
    time_ns: int = 0  # virtual
