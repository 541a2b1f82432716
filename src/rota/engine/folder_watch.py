"""Looks for new and changed files in a folder.

It polls. Notifications of the kernel (inotify) do not see what other machines write to a network file system, are lost
when there are too many, and say nothing about what was there before the start; a watcher that uses them has to list the
folder as well. Listing 10,000 files takes some hundredths of a second.

A file counts once its size and its time of change have been the same for `settle_s`, so that a file which is being
written is not read half-way.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatch
from typing import Any

import msgspec

from rota.domain import payload
from rota.domain.source import Folder
from rota.ids import IdSource
from rota.ops.events.emit import Emission

Version = tuple[int, int]
"""The size, and the time of change in nanoseconds."""
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, which a datetime can hold. Some file systems hold more."""


class Found(msgspec.Struct, frozen=True):
    """A file, by its path below the folder."""

    name: str
    version: Version


class FolderWatch:
    """What is known about the files of one folder. Another node may know the same: the keys of the events say so."""

    def __init__(self, source: Folder, ids: IdSource) -> None:
        self.source = source
        self._ids = ids
        self._seen: dict[str, tuple[Version, float]] = {}
        """The version of each file, and since when it is known."""
        self._told: dict[str, Version] = {}
        """The version of each file for which there is an event."""

    def settled(self, found: list[Found], now: float) -> list[Found]:
        """The files that have not changed for long enough and have no event yet. `now` is by a monotonic clock."""
        before, self._seen = self._seen, {}
        for one in found:
            version, since = before.get(one.name, (None, now))
            self._seen[one.name] = (one.version, since if version == one.version else now)
        self._told = {name: version for name, version in self._told.items() if name in self._seen}
        return [
            one
            for one in found
            if self._told.get(one.name) != one.version and now - self._seen[one.name][1] >= self.source.settle_s
        ]

    def tell(self, files: list[Found]) -> None:
        """These have an event now."""
        self._told.update((one.name, one.version) for one in files)

    def emission(self, one: Found) -> Emission:
        """The event of a file. All that watch the folder make the same one, but for its id."""
        size, changed_ns = one.version
        changed_at = datetime.fromtimestamp(min(max(changed_ns // 1_000_000_000, _FIRST_S), _LAST_S), UTC)
        value: dict[str, Any] = {
            "path": f"{self.source.path}/{one.name}",
            "name": one.name,
            "size": size,
            "modified_at": changed_at.isoformat().replace("+00:00", "Z"),
        }
        text = msgspec.json.encode(value).decode()
        where = hashlib.sha256(f"{self.source.path}/{one.name}".encode()).hexdigest()[:32]
        key = f"{where}:{changed_ns}:{size}"
        return Emission(self._ids.new(), self.source.event, text, "", key, payload.digest(text))


def listed(source: Folder) -> list[Found]:
    """The files that are there. Leaves out hidden ones, names that are not text, and all below that cannot be read."""
    return [
        Found(name, (about.st_size, about.st_mtime_ns))
        for name, about in _files(source.path, "", source.is_recursive)
        if fnmatch(name.rpartition("/")[2], source.pattern)
    ]


def _files(folder: str, below: str, is_recursive: bool) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(f"{folder}/{below}") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = f"{below}/{entry.name}" if below else entry.name
            if entry.name.startswith(".") or not payload.is_unicode(name):
                continue
            try:
                if entry.is_file():
                    yield name, entry.stat()
                elif is_recursive and entry.is_dir(follow_symlinks=False):
                    yield from _files(folder, name, is_recursive)
            except OSError:
                continue  # It was removed meanwhile, or cannot be read: it must not hold back the other files.
