"""Builds the pages of the server from `ui/`, if their sources have changed since the last build.

The build of the package calls it, and `make ui` runs it as a program. It needs only the standard library and npm.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

UI = Path(__file__).resolve().parent
PAGES = UI.parent / "src" / "rota" / "api" / "pages"
SHARED = (PAGES / "addresses.json", UI.parent / "src" / "rota" / "views" / "state_marks.json")
SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css", "LICENSE", "NOTICE")
NOT_SOURCES = {"node_modules", "build"}
WITHOUT = "the dashboard and the page /api/docs will be missing"


def build(warn: Callable[[str], None]) -> None:
    """Everything else of Rota works without the pages, so what is missing is only a warning."""
    stamp, wanted = PAGES / "dashboard" / ".built", _digest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    npm = shutil.which("npm")
    if npm is None:
        warn(f"npm was not found, so {WITHOUT}; install Node.js 20 or newer, then run this again")
    elif not _install(npm):
        warn(f"npm could not install the packages of ui/, so {WITHOUT}")
    elif subprocess.run([npm, "run", "--silent", "build"], cwd=UI, check=False, stdout=subprocess.DEVNULL).returncode:
        warn(f"the build of ui/ failed, so {WITHOUT}")
    else:
        _copy_swagger()
        stamp.write_text(wanted)


def _install(npm: str) -> bool:
    """Installs the locked packages again only if the lock file has changed."""
    lock, stamp = UI / "package-lock.json", UI / "node_modules" / ".installed"
    if stamp.is_file() and stamp.read_bytes() == lock.read_bytes():
        return True
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(command, cwd=UI, check=False, stdout=subprocess.DEVNULL).returncode:
        return False
    shutil.copy(lock, stamp)
    return True


def _copy_swagger() -> None:
    target = PAGES / "swagger"
    target.mkdir(parents=True, exist_ok=True)
    for name in SWAGGER:
        shutil.copy(UI / "node_modules" / "swagger-ui-dist" / name, target / name)


def _digest() -> str:
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    for top in sorted(UI.iterdir()):
        if top.name not in NOT_SOURCES:
            yield from (path for path in sorted([top, *top.rglob("*")]) if _is_source(path))
    yield from SHARED


def _is_source(path: Path) -> bool:
    # The types are made from the API's document and are no part of the built page.
    return path.is_file() and path.suffix != ".pyc" and path.name != "schema.d.ts"


def main() -> int:
    warnings: list[str] = []
    build(warnings.append)
    for warning in warnings:
        print(f"ui: {warning}", file=sys.stderr)
    return 1 if warnings and "--strict" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
