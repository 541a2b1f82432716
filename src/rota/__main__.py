"""`python -m rota` is `rota`."""

from __future__ import annotations

from rota.cli.main import main

if __name__ == "__main__":
    main()
