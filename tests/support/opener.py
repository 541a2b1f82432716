"""A thread whose descriptors show whether other code closes a number twice."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Self

GLOB_ERR, GLOB_ABORTED = 1, 2
SIZE_OF_GLOB = 200


class Opener:
    """A thread that opens folders without the interpreter's lock, and counts those that other code has closed."""

    def __init__(self, folder: Path) -> None:
        for number in range(100):
            (folder / str(number)).mkdir()
        self._pattern = f"{folder}/*/*".encode()
        self.stolen = 0
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _run(self) -> None:
        library = ctypes.CDLL(None)
        found = ctypes.create_string_buffer(SIZE_OF_GLOB)
        while not self._enough.is_set():
            self.stolen += library.glob(self._pattern, GLOB_ERR, None, found) == GLOB_ABORTED
            library.globfree(found)
