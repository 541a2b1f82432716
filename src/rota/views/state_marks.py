"""How the states of an execution are shown: word, icon, colour and sign, on a terminal, on the page and in the docs.

`state_marks.json` is the one place for them; the page's build reads the same file.
"""

from __future__ import annotations

from importlib import resources

import msgspec

from rota.domain.status import Status


class Pair(msgspec.Struct, frozen=True):
    """A colour in the light and in the dark theme."""

    light: str
    dark: str


class Colour(Pair, frozen=True):
    """The colour of states. `tint` is behind a state at the head of a page, `terminal` a name that click knows."""

    tint: Pair
    terminal: str


class State(msgspec.Struct, frozen=True):
    """`mark` is the form of a bar that is too small for an icon."""

    word: str
    meaning: str
    icon: str
    colour: str
    sign: str
    mark: str


class Marks(msgspec.Struct, frozen=True):
    tokens: dict[str, Pair]
    colours: dict[str, Colour]
    states: dict[Status, State]


_FILE = resources.files("rota.views") / "state_marks.json"
MARKS = msgspec.json.decode(_FILE.read_bytes(), type=Marks)


def sign(status: Status) -> str:
    return MARKS.states[status].sign


def terminal_colour(status: Status) -> str:
    return MARKS.colours[MARKS.states[status].colour].terminal
