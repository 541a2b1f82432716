"""Schedules as a job sees them, on the clock of a test; and what the SDK refuses."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from rota import App, Context, Fixed
from rota.domain.errors import DefinitionError, UnknownSchedule
from rota.domain.instant import moment
from rota.testing import harness
from tests.schedules import timetable

START = moment(timetable.START)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def since_start(at: datetime) -> float:
    return (at - START).total_seconds()


@pytest.fixture
def app() -> App:
    return App("shop")


def test_the_context_has_the_tick_and_how_late_it_is(app: App) -> None:
    seen: list[tuple[float, float, bool]] = []

    @app.job(every="1m", catch_up="last")
    def note(ctx: Context) -> None:
        seen.append((since_start(ctx.scheduled_for), ctx.late_by.total_seconds(), ctx.catch_up))

    with harness(app) as rota:
        rota.advance("2m")
        assert seen == [(60, 0, False), (120, 0, False)]
        rota.skip("75s")
        rota.run_until_idle()
        assert seen[2:] == [(180, 15, False)]
        rota.skip("205s")
        rota.run_until_idle()
        assert seen[3:] == [(360, 40, True)]


def test_jitter_moves_the_run_and_not_the_tick(app: App) -> None:
    seen: list[tuple[float, float]] = []

    @app.job(every="1h", jitter="10m")
    def note(ctx: Context) -> None:
        seen.append((since_start(ctx.scheduled_for), ctx.late_by.total_seconds()))

    with harness(app) as rota:
        rota.advance("24h30m")
    assert [at for at, _ in seen] == [3600 * n for n in range(1, 25)]
    assert all(0 <= late < 600 for _, late in seen)
    assert len({late for _, late in seen}) > 20


def test_a_fixed_delay_counts_from_the_end(app: App) -> None:
    seen: list[float] = []

    with harness(app) as rota:

        @app.job
        def poll() -> None:
            seen.append(since_start(rota.now))
            rota.skip(30)

        app.schedule(poll, after="1m")
        rota.advance("5m")
    assert seen == [0, 90, 180, 270]


def test_queued_ticks_run_one_after_the_other(app: App) -> None:
    """The retry of the first is due after the others."""
    seen: list[float] = []

    @app.job(every="1m", overlap="queue_all", end=NOON.replace(hour=0, minute=3), retry=Fixed(attempts=2, delay=150))
    def note(ctx: Context) -> None:
        seen.append(since_start(ctx.scheduled_for))
        if len(seen) == 1:
            raise ValueError

    with harness(app) as rota:
        rota.advance("1h")
    assert seen == [60, 60, 120, 180]


def test_a_schedule_at_run_time(app: App) -> None:
    seen: list[str] = []

    @app.job
    def greet(name: str) -> None:
        seen.append(name)

    with harness(app) as rota:
        schedule = app.schedule(greet, name="hello", cron="*/10 * * * *", arguments={"name": "ann"})
        rota.advance("10m")
        assert seen == ["ann"]
        assert schedule.pause("lunch")
        rota.advance("20m")
        paused = schedule.info().paused
        assert paused is not None
        assert (paused.by, paused.note) == ("sdk", "lunch")
        assert schedule.resume()
        rota.advance("10m")
        assert seen == ["ann", "ann"]
        assert [(row.outcome, row.count) for row in schedule.ticks()] == [("fired", 1), ("paused", 2), ("fired", 1)]
        assert [one.name for one in app.schedules()] == ["hello"]
        assert schedule.remove()
        assert not app.unschedule("hello")
        assert len(schedule.ticks()) == 3
        with pytest.raises(UnknownSchedule):
            schedule.info()


def test_several_expressions_are_several_schedules(app: App) -> None:
    ran: list[float] = []

    @app.job(cron=["0 1 * * *", "30 2 * * *"])
    def note(ctx: Context) -> None:
        ran.append(since_start(ctx.scheduled_for))

    with harness(app) as rota:
        assert [one.name for one in app.schedules()] == ["note", "note:2"]
        rota.advance("3h")
    assert ran == [3600, 9000]


def test_ticks_on_dates_of_a_calendar_do_not_run(app: App, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[float] = []

    @app.job(cron="0 0 * * *", calendars=["holidays"])
    def note(ctx: Context) -> None:
        ran.append(since_start(ctx.scheduled_for) / 86_400)

    with harness(app) as rota:
        assert "no calendar 'holidays'" in caplog.text
        app.calendar("holidays", [NOON.date() + timedelta(days=1), "2026-01-04"])
        rota.advance("4d")
    assert ran == [2, 4]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tz": "UTC"}, "give one of"),
        ({"every": "1ms"}, "every"),
        ({"every": "1m", "phase": "2m"}, "phase"),
        ({"cron": "0 0 30 2 *"}, "day"),
        ({"cron": []}, "cron"),
        ({"cron": "* * * * *", "tz": "Europe/Berlinn"}, "Europe/Berlin"),
        ({"cron": "* * * * *", "overlap": "maybe"}, "overlap"),
        ({"cron": "* * * * *", "catch_up": 1001}, "catch_up"),
        ({"cron": "* * * * *", "catch_up": "some"}, "catch_up"),
        ({"cron": "* * * * *", "window": 0}, "window"),
        ({"cron": "* * * * *", "jitter": -1}, "jitter"),
        ({"cron": "* * * * *", "dst_gap": "maybe"}, "dst_gap"),
        ({"cron": "* * * * *", "exclude": ["24.12.2026"]}, "exclude"),
        ({"cron": "* * * * *", "exclude": [NOON]}, "exclude"),
        ({"cron": "* * * * *", "calendars": "holidays"}, "calendars"),
        ({"cron": "* * * * *", "start": NOON, "end": NOON - timedelta(hours=1)}, "end"),
        ({"cron": "* * * * *", "start": NOON.replace(tzinfo=None)}, "start"),
        ({"at": []}, "at"),
        ({"at": NOON, "end": NOON - timedelta(hours=1)}, "never fires"),
        ({"every": "1m", "evry": "1m"}, "evry"),
        ({"cron": None}, "^cron: must be a list"),
        ({"cron": 5}, "^cron: must be a list"),
        ({"cron": {"* * * * *": 1}}, "^cron: must be a list"),
        ({"cron": ["* * * * *"] * 101}, "^cron: at most 100"),
        ({"at": None}, "^at: must be a list"),
        ({"at": NOON.date()}, "^at: must be a list"),
        ({"at": "2026-01-01"}, "^at: must be a list"),
        ({"at": [NOON] * 1001}, "^at: at most 1,000"),
        ({"at": NOON.replace(year=1969)}, "^at: must be between the years 1970 and 8999"),
        ({"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))}, "^at: must be between"),
        ({"every": "1m", "start": NOON.replace(year=9000)}, "^start: must be between the years 1970 and 8999"),
        ({"cron": "* * * * *", "start": NOON.replace(year=1)}, "^start: must be between"),
        ({"every": "1m", "end": NOON.replace(year=1)}, "^end: must be between"),
        ({"cron": "* * * * *", "exclude": None}, "^exclude: must be a list"),
        ({"cron": "* * * * *", "exclude": "2026-12-24"}, "^exclude: must be a list"),
        ({"cron": "* * * * *", "exclude": (NOON.date() for _ in itertools.count())}, "^exclude: at most 1,000"),
        ({"cron": "* * * * *", "calendars": None}, "^calendars: must be a list"),
        ({"cron": "* * * * *", "calendars": ["a b"]}, "^calendars: a calendar's name"),
        ({"cron": "* * * * *", "calendars": map(str, itertools.count())}, "^calendars: at most 20"),
        ({"cron": "* * * * *", "phase": "5s"}, "^phase: means something only with every="),
        ({"every": "1m", "dst_gap": "skip"}, "^dst_gap: means something only with cron="),
    ],
)
def test_invalid_options_of_a_schedule_are_refused_when_it_is_declared(
    app: App, options: dict[str, Any], words: str
) -> None:
    def note() -> None: ...

    with pytest.raises(DefinitionError, match=words):
        app.job(**options)(note)
    assert app.job(every="1h")(note) is app.jobs["note"], "a refused declaration leaves nothing"


def test_an_end_may_be_in_the_year_9999(app: App) -> None:
    @app.job(cron="0 0 * * *", end=datetime.max.replace(tzinfo=UTC))
    def note() -> None: ...

    with harness(app) as rota:
        rota.advance("2d")
        assert len(app.schedules()[0].ticks()) == 2


def test_a_job_may_have_triggers_of_several_kinds(app: App) -> None:
    ran: list[float] = []

    @app.job(cron=["0 13 * * *", "0 14 * * *"], every="4h", at=NOON + timedelta(minutes=5))
    def note(ctx: Context) -> None:
        ran.append(since_start(ctx.scheduled_for) / 3600)

    with harness(app) as rota:
        assert [schedule.name for schedule in app.schedules()] == ["note", "note:2", "note:3", "note:4"]
        rota.advance("15h")
    assert ran == [4, 8, 12, 12 + 5 / 60, 13, 14]


def test_two_jobs_do_not_share_a_schedule(app: App) -> None:
    def note() -> None: ...

    app.job(cron=["0 0 * * *", "0 1 * * *"])(note)
    with pytest.raises(DefinitionError, match=r"already has a schedule 'note:2': give the job name="):
        app.job(name="note:2", every="1h")(note)
    assert "note:2" not in app.jobs


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"at": NOON - timedelta(hours=12)},
            "^at: the time is in the past, so the schedule would never fire; to run the job now, enqueue it$",
        ),
        ({"at": [NOON - timedelta(days=1), NOON - timedelta(days=2)]}, "^at: the time is in the past"),
        ({"at": NOON + timedelta(days=1), "end": NOON}, "^end: the schedule never fires"),
        ({"cron": "0 0 * * *", "end": NOON}, "^end: the schedule never fires between now and its end$"),
        ({"every": "1h", "end": NOON - timedelta(days=1)}, "^end: the schedule never fires"),
        ({"after": "1h", "end": NOON - timedelta(days=1)}, "^end: the schedule never fires"),
        ({"every": "1h", "arguments": [1]}, "^arguments: must be a dict"),
    ],
)
def test_a_schedule_without_future_ticks_is_refused_at_run_time(app: App, options: dict[str, Any], words: str) -> None:
    @app.job
    def note() -> None: ...

    with harness(app):
        with pytest.raises(DefinitionError, match=words):
            app.schedule(note, **options)
        assert app.schedules() == []


def test_a_schedule_without_future_ticks_may_stay_in_the_code(app: App) -> None:
    @app.job(at=NOON - timedelta(days=1))
    def note() -> None: ...

    with harness(app) as rota:
        for _ in range(2):
            app.schedule(note, name="once", at=NOON)
            rota.advance("1d")
        assert [(one.name, one.info().next_at) for one in app.schedules()] == [("note", None), ("once", None)]
        assert len(app.schedules()[1].ticks()) == 1


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (None, "^days: must be a list"),
        ("2026-01-01", "^days: must be a list"),
        ([1], "^days: a date or a text"),
        ([NOON], "^days: a date or a text"),
        (["2026-13-01"], "^days: a date is written as"),
        (("2026-01-01" for _ in itertools.count()), "^days: at most 10,000"),
    ],
)
def test_a_calendar_is_a_list_of_dates(app: App, days: Any, words: str) -> None:
    with harness(app), pytest.raises(DefinitionError, match=words):
        app.calendar("holidays", days)


@pytest.mark.parametrize("note", ["x" * 1_000_000, "a\0b", "\ud800"])
def test_a_note_is_cleaned_and_shortened(app: App, note: str) -> None:
    @app.job(every="1h")
    def tidy() -> None: ...

    with harness(app):
        (schedule,) = app.schedules()
        assert schedule.pause(note)
        paused = schedule.info().paused
        assert paused is not None
        assert paused.note
        assert len(paused.note) <= 500
