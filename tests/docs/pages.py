"""Reading the documentation: pages, blocks of code, tables and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    page: str
    line: int
    info: str
    body: str


@cache
def pages() -> dict[str, str]:
    """Every page, by its path in the repository."""
    paths = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    return {path.relative_to(REPOSITORY).as_posix(): path.read_text("utf-8") for path in sorted(paths)}


def blocks(page: str, *infos: str) -> list[Block]:
    """The fenced blocks of a page whose first line names one of `infos`, in order."""
    text = pages()[page]
    return [
        Block(page, text.count("\n", 0, found.start()) + 2, found["info"].strip(), found["body"])
        for found in _FENCE.finditer(text)
        if found["info"].strip() in infos
    ]


def inline_code(page: str) -> list[str]:
    """What stands between backticks in running text."""
    return _INLINE.findall(_FENCE.sub("", pages()[page]))


def prose(page: str) -> str:
    """The page without its blocks of code, each paragraph and each row of a table on one line."""
    text = re.sub(r"[ \t]+", " ", _FENCE.sub("", pages()[page]))
    return re.sub(r"(?<=[^\n|])\n ?(?=[^\n|#-])", " ", text)


def links(page: str) -> list[str]:
    return _LINK.findall(_FENCE.sub("", pages()[page]))


def anchors(page: str) -> set[str]:
    """The headings of a page as GitHub names them."""
    text = _FENCE.sub("", pages()[page])
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text)}


def table(page: str, heading: str) -> Iterator[list[str]]:
    """The rows of the first table below a heading, without its own head."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", pages()[page], re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no section {heading!r}"
    section = found[1]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
