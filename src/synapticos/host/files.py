"""What a command writes for a person: whole, or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from synapticos.errors import UserError


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, which is made if need be: all, or none where one cannot be written (UserError)."""
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=folder, ignore_cleanup_errors=True) as scratch:
            for name, content in files.items():
                place = Path(scratch) / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            for name in files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(scratch) / name, folder / name)
    except OSError as error:
        for place in new:
            with contextlib.suppress(OSError):
                place.rmdir()
        raise UserError(f"{folder}: cannot be written ({error.strerror}); give another folder, or make room in it") from None
