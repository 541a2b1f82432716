"""`rota run watch`: a run until its end, as a picture that is updated in place, as lines, or as JSON."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator

from rota.cli import output, run_picture, text
from rota.cli.database import Database
from rota.domain import duration
from rota.domain.errors import StoreUnavailable
from rota.domain.status import TERMINAL, Status
from rota.views import run as views
from rota.views.run import RunDetail
from rota.views.shape import rfc3339
from rota.views.step import PENDING, StepInfo

LOOK_S = 0.5
SHARE = 0.2
"""The longest share of the time that is spent reading: a run with very wide maps is read less often."""
PATIENCE_S = 60.0
"""How long a watch waits for a database that cannot be reached."""
UP, CLEAR = "\x1b[{}A", "\x1b[J"


def watch_run(database: Database, id: str, *, as_json: bool) -> Status:
    """Returns the status with which the run ended."""
    show = _Json() if as_json else _Picture() if sys.stdout.isatty() else _Lines()
    last = None
    for last in _looks(database, id):
        show(last)
        sys.stdout.flush()
    assert last is not None
    return last.status


def _looks(database: Database, id: str) -> Iterator[RunDetail]:
    """Reads the run repeatedly until it has ended."""
    give_up_at: float | None = None
    while True:
        began = database.clock.monotonic()
        try:
            found = database.read(views.run, database.namespace, id)
            give_up_at = None
        except StoreUnavailable as error:
            if not error.may_pass or (give_up_at is not None and began > give_up_at):
                raise
            if give_up_at is None:
                give_up_at = began + PATIENCE_S
                output.message(f"trying again for {PATIENCE_S:g} s: {error}")
            database.hang_up()
            threading.Event().wait(LOOK_S)
            continue
        yield found
        if found.status in TERMINAL:
            return
        threading.Event().wait(max(LOOK_S, (database.clock.monotonic() - began) * (1 / SHARE - 1)))


class _Picture:
    """Draws over the last picture. It is never higher than the terminal, which could not move back over it."""

    def __init__(self) -> None:
        self._height = 0

    def __call__(self, run: RunDetail) -> None:
        size = shutil.get_terminal_size()
        is_over = run.status in TERMINAL
        frame = run_picture.lines(run, size.columns)
        most = len(run.steps)
        while not is_over and len(frame) >= size.lines and most > 1:
            most = max(1, most - max(1, len(frame) - size.lines + 1))
            frame = run_picture.lines(run, size.columns, most)
        if not is_over:
            frame = frame[: max(1, size.lines - 1)]
        back = UP.format(self._height) + "\r" + CLEAR if self._height else ""
        print(back + "\n".join(frame))
        self._height = len(frame)


class _Changes:
    """The steps that have changed since the last look."""

    def __init__(self) -> None:
        self._known: dict[str, object] = {}

    def of(self, run: RunDetail, key: Callable[[StepInfo], object]) -> list[StepInfo]:
        found = [step for step in run.steps if self._known.get(step.step, PENDING) != key(step)]
        self._known.update({step.step: key(step) for step in found})
        return found


class _Lines:
    """A line for each change."""

    def __init__(self) -> None:
        self._changes, self._status = _Changes(), ""

    def __call__(self, run: RunDetail) -> None:
        for step in self._changes.of(run, _state):
            took = f" {duration.words(step.duration.total_seconds())}" if step.completed_at and step.duration else ""
            error = f": {text.first_line(step.error_message)}" if step.error_message and step.status == "failed" else ""
            note = run_picture.note(step)
            state = note if note.startswith(step.status) else f"{step.status}{took}" + (f" ({note})" if note else "")
            self._print(f"{step.step} {state}{error}")
        if (status := run_picture.status_words(run)) != self._status:
            self._status = status
            took = f" after {duration.words(run.duration.total_seconds())}" if run.completed_at and run.duration else ""
            self._print(f"run {status}{took}")

    def _print(self, words: str) -> None:
        print(f"{rfc3339(text.now().replace(microsecond=0))} {text.harmless(words)}")


class _Json:
    """An object for each change, and the run at its end."""

    def __init__(self) -> None:
        self._changes = _Changes()

    def __call__(self, run: RunDetail) -> None:
        for step in self._changes.of(run, _state):
            print(output.to_json(step))
        if run.status in TERMINAL:
            print(output.to_json(run))


def _state(step: StepInfo) -> object:
    """A step is printed again when this value changes. For a map it changes with each tenth of its items."""
    if step.map is None or not step.map.width:
        return step.status
    about = step.map
    return step.status, 10 * (about.width - about.open) // about.width, about.failed > 0
