"""Hints between the processes that share one SQLite file: datagrams to Unix sockets in a folder beside it.

A listener is a socket file whose name lists the kinds of hints that it wants. A sender lists the folder again only when
it has changed. A socket without a reader refuses the datagram and is removed; a full one drops it, which is allowed.
Other files in the folder are left alone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Sequence

import msgspec

from rota.clock import Clock
from rota.domain.errors import StoreUnavailable
from rota.store.hints import Hint, HintDecoder, Listener, merged
from rota.store.pipe_listener import PipeListener
from rota.store.sqlite import side_files

_LARGEST = 60_000
_TICK_NS = 20_000_000
"""Longer than a tick of a file system's clock."""
_HAS_PROC = os.path.isdir("/proc/self/fd")  # noqa: PTH112
_encode = msgspec.json.Encoder().encode


class SqliteBus:
    """The folder of sockets beside a database file, named without links."""

    def __init__(self, database: str, clock: Clock) -> None:
        self._database = database
        self._folder = database + side_files.HINTS
        self._clock = clock
        self._socket: socket.socket | None = None
        self._folder_fd = -1
        self._seen = 0
        """When the folder had been changed last when it was listed; 0 if it must be listed again."""
        self._names: dict[str, frozenset[str]] = {}
        self._guard = threading.Lock()

    def send(self, hints: Sequence[Hint]) -> None:
        if not hints:
            return
        # Threads that wait for results send hints too, at the same time as the writer thread.
        with self._guard:
            try:
                if self._look():
                    self._send(merged(hints))
            except (OSError, StoreUnavailable):
                pass  # `listen` reports a bad folder.

    def _send(self, hints: list[Hint]) -> None:
        for name, kinds in list(self._names.items()):
            news = [hint for hint in hints if hint.__struct_config__.tag in kinds]
            if news:
                self._send_to(name, news)

    def listen(self, *kinds: type[Hint]) -> Listener:
        folder = side_files.open_folder(self._database, create=True)
        tags = "+".join(str(kind.__struct_config__.tag) for kind in kinds)
        name = f"{os.getpid()}-{self._clock.random_bits(32):08x}-{tags}"
        return _SocketListener(self._folder, folder, name, HintDecoder(self._clock, self._folder))

    def close(self) -> None:
        with self._guard:
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            self._leave()

    def _look(self) -> bool:
        """Whether there are listeners. Lists the folder if it has changed, or was removed and made again."""
        if self._folder_fd < 0 and not os.access(self._folder, os.F_OK):
            return False  # The first listener creates the folder.
        folder = os.fstat(self._folder_fd) if self._folder_fd >= 0 else None
        if folder is None or not folder.st_nlink:
            self._leave()
            self._folder_fd = side_files.open_folder(self._database, create=False)
            folder = os.fstat(self._folder_fd)
        elif folder.st_mtime_ns == self._seen:
            return bool(self._names)
        changed_at = folder.st_mtime_ns
        # A file that is created in the same tick of the file system's clock does not change the time again, so such a
        # young listing is not kept.
        self._seen = changed_at if self._clock.now() * 1000 - changed_at > _TICK_NS else 0
        self._names = {name: frozenset(name.split("-")[-1].split("+")) for name in os.listdir(self._folder_fd)}
        return bool(self._names)

    def _leave(self) -> None:
        self._names = {}
        if self._folder_fd >= 0:
            os.close(self._folder_fd)
            self._folder_fd = -1

    def _send_to(self, name: str, news: list[Hint]) -> None:
        data = _encode(news)
        if len(data) > _LARGEST:
            # Only a list of ended ids gets so large; its readers also poll.
            return
        try:
            self._sender().sendto(data, _address(self._folder, self._folder_fd, name))
        except (ConnectionRefusedError, FileNotFoundError):
            self._names.pop(name, None)
            _remove(self._folder_fd, name)
        except OSError:
            pass  # The socket is full, or belongs to another user: that listener also polls.

    def _sender(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
        return self._socket


class SilentBus:
    """For a database in memory, which no other process uses."""

    def send(self, hints: Sequence[Hint]) -> None:
        pass

    def listen(self, *kinds: type[Hint]) -> Listener:
        return PipeListener(kinds, lambda listener: None)

    def close(self) -> None:
        pass


class _SocketListener:
    def __init__(self, folder: str, folder_fd: int, name: str, decoder: HintDecoder) -> None:
        self._name = name
        self._folder_fd = folder_fd
        self._decoder = decoder
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind(_address(folder, folder_fd, name))
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def take(self) -> list[Hint]:
        hints: list[Hint] = []
        with contextlib.suppress(BlockingIOError, OSError):
            for _ in range(1000):
                hints.extend(self._decoder.decode(self._socket.recv(_LARGEST + 1)))
        return merged(hints)

    def close(self) -> None:
        self._socket.close()
        if self._folder_fd >= 0:
            _remove(self._folder_fd, self._name)
            os.close(self._folder_fd)
            self._folder_fd = -1


def _remove(folder_fd: int, name: str) -> None:
    """Removes a file from the folder if it is a socket."""
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder_fd)


def _address(folder: str, folder_fd: int, name: str) -> str:
    """The socket's address through the descriptor of the folder: Unix limits the length of a socket's path."""
    return f"/proc/self/fd/{folder_fd}/{name}" if _HAS_PROC else f"{folder}/{name}"
