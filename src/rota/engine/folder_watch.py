"""Finds new and changed files in a folder, by listing it at intervals.

Notifications of the kernel (inotify) would not replace the listing. They do not report what other machines write to a
network file system, they are lost when there are too many, and they do not report files from before the start. Listing
10,000 files takes some hundredths of a second.

The event of a file is emitted once its size and its modification time have stayed the same for `settle_s`. So a job
does not read a file that is still being written.
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
"""The size, and the modification time in nanoseconds."""
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, which a datetime can hold. Some file systems can hold other years."""


class Found(msgspec.Struct, frozen=True):
    """A file, by its path below the folder."""

    name: str
    version: Version


class FolderWatch:
    """The files of one folder that this process has seen.

    Several supervisors may watch the same folder. Their events have the same keys, so each event is emitted once.
    """

    def __init__(self, source: Folder, ids: IdSource) -> None:
        self.source = source
        self._ids = ids
        self._seen: dict[str, tuple[Version, float]] = {}
        """The version of each file, and since when the file has had this version."""
        self._emitted: dict[str, Version] = {}
        """The last version of each file whose event was emitted."""

    def settled(self, found: list[Found], now: float) -> list[Found]:
        """The files that have not changed for `settle_s` and whose event was not emitted. `now` is a monotonic time."""
        before, self._seen = self._seen, {}
        for one in found:
            version, since = before.get(one.name, (None, now))
            self._seen[one.name] = (one.version, since if version == one.version else now)
        self._emitted = {name: version for name, version in self._emitted.items() if name in self._seen}
        return [
            one
            for one in found
            if self._emitted.get(one.name) != one.version and now - self._seen[one.name][1] >= self.source.settle_s
        ]

    def note_emitted(self, files: list[Found]) -> None:
        """Remembers that the events of these files were emitted."""
        self._emitted.update((one.name, one.version) for one in files)

    def emission(self, one: Found) -> Emission:
        """The event of a file. All supervisors that watch the folder make the same event, except for its id."""
        size, modified_ns = one.version
        modified_at = datetime.fromtimestamp(min(max(modified_ns // 1_000_000_000, _FIRST_S), _LAST_S), UTC)
        path = _joined(self.source.path, one.name)
        value: dict[str, Any] = {
            "path": path,
            "name": one.name,
            "size": size,
            "modified_at": modified_at.isoformat().replace("+00:00", "Z"),
        }
        text = msgspec.json.encode(value).decode()
        path_digest = hashlib.sha256(path.encode()).hexdigest()[:32]
        key = f"{path_digest}:{modified_ns}:{size}"
        return Emission(self._ids.new(), self.source.event, text, "", key, payload.digest(text))


def listed(source: Folder) -> list[Found]:
    """The files in the folder, without hidden files, names that are not Unicode, and entries that cannot be read."""
    return [
        Found(name, (stat.st_size, stat.st_mtime_ns))
        for name, stat in _files(source.path, "", source.is_recursive)
        if fnmatch(name.rpartition("/")[2], source.pattern)
    ]


def _files(folder: str, below: str, is_recursive: bool) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(_joined(folder, below)) as entries:
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
                continue  # The entry was removed in between, or cannot be read. The other files are still listed.


def _joined(folder: str, name: str) -> str:
    """The root folder is the only one whose path ends with a slash."""
    return f"{folder.rstrip('/')}/{name}"
