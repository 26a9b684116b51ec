"""What a command writes for a person: whole, or not at all."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from synapticos.errors import UserError


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, which is made if need be: all, or none where one cannot be written (UserError)."""
    at = folder
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=folder, ignore_cleanup_errors=True) as scratch:
            for name, content in files.items():
                place = Path(scratch) / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            for name in files:
                at = folder / name
                if at.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR).lower())
            for name in files:
                at = folder / name
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(scratch) / name, folder / name)
    except OSError as error:
        for place in new:
            with contextlib.suppress(OSError):
                place.rmdir()
        way = "give another name" if at != folder else "give another folder, or make room in it"
        raise UserError(f"{at}: cannot be written ({(error.strerror or str(error)).lower()}); {way}") from None
