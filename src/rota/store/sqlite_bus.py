"""Hints between the processes that share one SQLite file: datagrams to Unix sockets in a folder beside it.

A listener is a socket file whose name says what it wants to hear. A sender looks the folder up again only when it has
changed. A socket nobody reads any more refuses the datagram and is removed; a full one drops it, which is allowed.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rota.clock import Clock
from rota.store.hints import Hint, Listener, merged

_LARGEST = 60_000
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Hint]).decode


class SqliteBus:
    """The folder of sockets beside a database file."""

    def __init__(self, database: Path, clock: Clock) -> None:
        self._folder = database.with_name(database.name + "-hints")
        self._clock = clock
        self._socket: socket.socket | None = None
        self._folder_fd = -1
        self._changed_at = -1
        self._names: dict[str, frozenset[str]] = {}

    def send(self, hints: Sequence[Hint]) -> None:
        if not hints:
            return
        with contextlib.suppress(OSError):
            self._look()
            wanted = merged(hints)
            for name, kinds in list(self._names.items()):
                news = [hint for hint in wanted if hint.__struct_config__.tag in kinds]
                if news:
                    self._send_to(name, news)

    def listen(self, *kinds: type[Hint]) -> Listener:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        tags = "+".join(str(kind.__struct_config__.tag) for kind in kinds)
        name = f"{os.getpid()}-{self._clock.random_bits(32):08x}-{tags}"
        return _SocketListener(self._folder / name)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._folder_fd >= 0:
            os.close(self._folder_fd)
            self._folder_fd = -1

    def _look(self) -> None:
        changed_at = self._folder.stat().st_mtime_ns
        if changed_at != self._changed_at:
            self._names = {name: frozenset(name.split("-")[-1].split("+")) for name in os.listdir(self._folder)}
            self._changed_at = changed_at

    def _send_to(self, name: str, news: list[Hint]) -> None:
        data = _encode(news)
        if len(data) > _LARGEST:
            # Only the list of ended ids grows so large; its readers poll as well.
            return
        try:
            self._sender().sendto(data, _short(self._folder, self._fd(), name))
        except (ConnectionRefusedError, FileNotFoundError):
            self._names.pop(name, None)
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
        except BlockingIOError:
            pass

    def _sender(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
        return self._socket

    def _fd(self) -> int:
        if self._folder_fd < 0:
            self._folder_fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return self._folder_fd


class SilentBus:
    """For a database that only this process can see, where nobody waits."""

    def send(self, hints: Sequence[Hint]) -> None:
        pass

    def listen(self, *kinds: type[Hint]) -> Listener:
        return _SilentListener()

    def close(self) -> None:
        pass


class _SocketListener:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._socket.bind(_short(path.parent, folder, path.name))
        finally:
            os.close(folder)

    def fileno(self) -> int:
        return self._socket.fileno()

    def take(self) -> list[Hint]:
        hints: list[Hint] = []
        with contextlib.suppress(BlockingIOError, OSError):
            for _ in range(1000):
                data = self._socket.recv(_LARGEST + 1)
                with contextlib.suppress(msgspec.MsgspecError):
                    hints.extend(_decode(data))
        return merged(hints)

    def close(self) -> None:
        self._socket.close()
        with contextlib.suppress(OSError):
            self._path.unlink()


class _SilentListener:
    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read

    def take(self) -> list[Hint]:
        return []

    def close(self) -> None:
        for fd in (self._read, self._write):
            with contextlib.suppress(OSError):
                os.close(fd)


def _short(folder: Path, folder_fd: int, name: str) -> str:
    """The socket's address; a path longer than the 107 bytes a socket takes goes through the open folder."""
    direct = str(folder / name)
    return direct if len(os.fsencode(direct)) < 108 else f"/proc/self/fd/{folder_fd}/{name}"
