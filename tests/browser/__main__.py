"""Serves the shop and its troubles until Ctrl-C: `python -m tests.browser [database]`."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

from tests.browser.site import Shop, fill


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rota-shop-") as name:
        folder = Path(name)
        database = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/rota.db"
        with Shop(folder, database) as site:
            print(f"filling {database}, served at {site.url}", flush=True)
            fill(site)
            print("ready; Ctrl-C ends it", flush=True)
            signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
