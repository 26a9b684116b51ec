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
    if file.exists() and not file.is_file():
        raise UserError(f"{path}: is no regular file; give the app's file or its folder")
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
        place = file if error.filename in (None, str(file.resolve())) else error.filename
        raise UserError(f"{place}:{error.lineno}: {error.msg}" if error.lineno else f"{place}: {error.msg}") from None
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        raise UserError(f"{_place(error, file)}: ends the program (SystemExit {error.code}); an app only declares what there is") from None
    except BaseException as error:
        raise mistake(error, path) from error
    apps = list({id(v): v for v in vars(module).values() if isinstance(v, App)}.values())
    if len(apps) != 1:
        raise UserError(f"{path}: declares {len(apps)} apps; it needs one: app = syn.App(...)")
    return apps[0]


def mistake(error: BaseException, path: str | Path) -> BaseException:
    """What to raise for an error out of the app at `path`: one line with its place, or itself where it is ours."""
    file = Path(path)
    file = file / "app.py" if file.is_dir() else file
    passed = [f.filename for f in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, UserError) or str(file.resolve()) not in passed or Path(passed[-1]).is_relative_to(Path(__file__).parents[1]):
        return error
    text = " ".join(str(error).split())
    return UserError(f"{_place(error, file)}: {type(error).__name__}{f': {text}' if text else ''}")


def _place(error: BaseException, file: Path) -> str:
    """The last line of the app's own file that the error passed through."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file.resolve())]
    return f"{file}:{lines[-1]}" if lines else str(file)


def _at(error: BaseException, file: Path) -> str:
    """The error's text with its place in front, the file named as the user named it."""
    text, whole = str(error), str(file.resolve())
    return f"{file}{text.removeprefix(whole)}" if text.startswith(whole) else f"{_place(error, file)}: {text}"
