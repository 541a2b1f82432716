"""Finding the app that a command names as MODULE:APP."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from rota.domain.errors import UsageError
from rota.sdk.app import App


def load_app(reference: str) -> App:
    """Imports `package.module:attribute` from the current folder or the installed packages."""
    module_name, _, attribute = reference.partition(":")
    if not module_name:
        raise UsageError(f"an app is named as MODULE:APP, for example shop:app, not {reference!r}")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise UsageError(
                f"there is no module {module_name!r} in this folder or among the installed packages"
            ) from None
        raise UsageError(f"{module_name} could not be imported: {error}") from error
    except Exception as error:
        raise UsageError(f"{module_name} could not be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, attribute or "app", None)
    if isinstance(found, App):
        return found
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, App))
    hint = f"it has {', '.join(apps)}" if apps else "it has no rota.App at all"
    raise UsageError(f"{module_name} has no app {attribute or 'app'!r}; {hint}")
