"""Serves the shop and its troubles until Ctrl-C: `python -m tests.browser [database]`."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
from pathlib import Path

from tests.browser.site import Shop, fill


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # So that kill ends the server and the workers, too.
    with contextlib.suppress(KeyboardInterrupt):
        serve()


def serve() -> None:
    with tempfile.TemporaryDirectory(prefix="rota-shop-") as name:
        folder = Path(name)
        database = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/rota.db"
        with Shop(folder, database) as site:
            print(f"filling {database}, served at {site.url}", flush=True)
            fill(site)
            print("ready; Ctrl-C ends it", flush=True)
            signal.pause()


if __name__ == "__main__":
    main()
