"""An app from its file: the module is executed, and the one App in it is the app."""

import importlib.util
import sys
import traceback
from pathlib import Path

from synapticos.app.declare import App
from synapticos.errors import UserError


def load_app(path: str | Path) -> App:
    """Execute the file at `path`. Raises UserError for all that may be wrong with it."""
    file = Path(path)
    if file.is_dir():
        file = file / "app.py"
    if not file.is_file():
        raise UserError(f"{path}: no such file; syn new NAME writes an app to start from")
    name = f"synapticos_app_{file.resolve().parent.name}_{file.stem}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UserError as error:
        if type(error) is not UserError:
            raise
        raise UserError(_at(error, file)) from None
    except SyntaxError as error:
        place = file if error.filename == str(file.resolve()) else error.filename
        raise UserError(f"{place}:{error.lineno}: {error.msg}") from None
    except Exception as error:
        if Path(traceback.extract_tb(error.__traceback__)[-1].filename).is_relative_to(Path(__file__).parents[1]):
            raise  # ours
        raise UserError(f"{_place(error, file)}: {type(error).__name__}: {error}") from error
    apps = list({id(v): v for v in vars(module).values() if isinstance(v, App)}.values())
    if len(apps) != 1:
        raise UserError(f"{path}: declares {len(apps)} apps; it needs one: app = syn.App(...)")
    return apps[0]


def _place(error: BaseException, file: Path) -> str:
    """The last line of the app's own file that the error passed through."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file.resolve())]
    return f"{file}:{lines[-1]}" if lines else str(file)


def _at(error: BaseException, file: Path) -> str:
    """The error's text with its place in front, the file named as the user named it."""
    text, whole = str(error), str(file.resolve())
    return f"{file}{text.removeprefix(whole)}" if text.startswith(whole) else f"{_place(error, file)}: {text}"
