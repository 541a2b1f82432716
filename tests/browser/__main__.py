"""Serves the shop and its troubles until Ctrl-C, or takes pictures of every page of it.

python -m tests.browser [--database URL]
python -m tests.browser --screenshots FOLDER [--only PAGE]
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import tempfile
from pathlib import Path

from tests.browser import screenshots
from tests.browser.site import Shop, fill


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.browser")
    parser.add_argument("--database", help="a new database; a temporary SQLite file unless given")
    parser.add_argument("--screenshots", metavar="FOLDER", type=Path, help="take pictures of every page, and end")
    parser.add_argument("--only", metavar="PAGE", default="", help="only pages whose name begins with this")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # So that kill ends the server and the workers, too.
    with contextlib.suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(prefix="rota-shop-") as name:
        folder = Path(name)
        with Shop(folder, given.database or f"sqlite:///{folder}/rota.db") as site:
            print(f"filling {site.database}, served at {site.url}", flush=True)
            fill(site)
            if given.screenshots is None:
                print("ready; Ctrl-C ends it", flush=True)
                signal.pause()
            _take(site, given.screenshots, given.only)


def _take(site: Shop, folder: Path, only: str) -> None:
    (site.folder / "empty").mkdir()
    with Shop(site.folder / "empty", f"sqlite:///{site.folder}/empty/rota.db") as empty:
        print(f"{screenshots.take(folder, site, empty, only)} pictures in {folder}", flush=True)


if __name__ == "__main__":
    main()
