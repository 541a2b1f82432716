"""The colours of the dashboard: text can be read, and any two states can be told apart, by everyone."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from rota.domain.status import Status
from rota.views.state_marks import MARKS, Pair
from tests.support import colour
from tests.support.colour import VISIONS, contrast, difference

LEAST_DIFFERENCE = 15.0
TEXT, MARK = 4.5, 3.0
THEMES = ("light", "dark")


def of(theme: str, token: str) -> str:
    pair: Pair = {**MARKS.tokens, **MARKS.colours}[token]
    return str(getattr(pair, theme))


def test_black_and_white_and_a_published_pair() -> None:
    """The pair is number 1 of the test data of Sharma, Wu and Dalal (2005), which is in Lab."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert colour._ciede2000((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert colour._ciede2000((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514)) == pytest.approx(0.9082, abs=1e-4)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("vision", list(VISIONS))
def test_any_two_state_colours_stay_apart(theme: str, vision: str) -> None:
    found = {
        (one, other): difference(of(theme, one), of(theme, other), vision)
        for one, other in combinations(MARKS.colours, 2)
    }
    assert min(found.values()) >= LEAST_DIFFERENCE, found


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_marks_have_enough_contrast(theme: str) -> None:
    def ratio(front: str, back: str) -> float:
        return contrast(of(theme, front), of(theme, back))

    wanted: dict[tuple[str, str], float] = {
        **{(ink, back): TEXT for ink in ("ink", "ink-2", "ink-3") for back in ("canvas", "panel", "fill")},
        **{(colour, back): MARK for colour in MARKS.colours for back in ("canvas", "panel")},
        ("on-ink", "ink"): TEXT,
        ("ink", "fill-2"): TEXT,
        ("edge", "panel"): MARK,
    }
    assert {pair: ratio(*pair) for pair, least in wanted.items() if ratio(*pair) < least} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_a_word_on_the_tint_of_its_state_can_be_read(theme: str) -> None:
    tints: dict[str, Any] = {name: getattr(colour.tint, theme) for name, colour in MARKS.colours.items()}
    assert {name: tint for name, tint in tints.items() if contrast(of(theme, "ink"), tint) < TEXT} == {}


def test_every_state_has_a_mark_of_its_own() -> None:
    assert set(MARKS.states) == set(Status)
    for member in ("word", "icon", "sign"):
        shown = [getattr(state, member) for state in MARKS.states.values()]
        assert len(set(shown)) == len(Status), member
    assert {state.colour for state in MARKS.states.values()} == set(MARKS.colours)
