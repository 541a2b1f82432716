"""Results for machines (JSON lines) and for people (a table in Markdown)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from benchmarks.figures import Figure
from benchmarks.place import Machine


class Run(msgspec.Struct, frozen=True, kw_only=True, tag="run", tag_field="kind"):
    """The first line of the output."""

    date: str
    version: str
    command: str
    machine: Machine
    database: str
    """Its version and what makes its commits durable."""
    peers: str
    """The versions of the peers, or why they are not there."""


class Result(msgspec.Struct, frozen=True, kw_only=True, tag="figure", tag_field="kind"):
    """One figure as it was measured."""

    name: str
    section: str
    what: str
    unit: str
    samples: list[float]
    best: float
    median: float
    floor: float | None
    aim: float | None
    verdict: str
    ours: str | None
    ratio: float | None
    """How many times better than this peer Rota is."""
    times: float | None
    commits_per_s: float
    """What the bare database could commit in the same rounds; the median."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure", tag_field="kind"):
    """A section that was given up."""

    section: str
    error: str


def results(
    figures: Iterable[Figure], samples: Mapping[str, Sequence[float]], disk: Mapping[str, Sequence[float]]
) -> list[Result]:
    """Those figures that were measured."""
    return [_result(figure, samples, disk) for figure in figures if samples.get(figure.name)]


def _result(figure: Figure, samples: Mapping[str, Sequence[float]], disk: Mapping[str, Sequence[float]]) -> Result:
    found = samples[figure.name]
    ours = samples.get(figure.ours) if figure.ours else None
    return Result(
        name=figure.name,
        section=figure.section,
        what=figure.what,
        unit=figure.unit,
        samples=[round(value, 4) for value in found],
        best=round(figure.best(found), 4),
        median=round(statistics.median(found), 4),
        floor=figure.floor,
        aim=figure.aim,
        verdict=figure.verdict(found, ours),
        ours=figure.ours,
        ratio=round(figure.ratio(found, ours), 2) if ours else None,
        times=figure.times,
        commits_per_s=round(statistics.median(disk[figure.name])),
    )


def lines(run: Run, found: Sequence[Result], failures: Sequence[Failure]) -> str:
    return "".join(msgspec.json.encode(item).decode() + "\n" for item in (run, *found, *failures))


def table(found: Sequence[Result]) -> str:
    """Columns as wide as they need to be, so that it reads well in a terminal too."""
    head = ("what", "best", "median", "of", "floor", "aim", "Rota is", "", "bare commits/s")
    rows = [head, *(_row(result) for result in found)]
    widths = [max(2, *(len(row[column]) for row in rows)) for column in range(len(head))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    text = [
        _line([cell.ljust(widths[0]) if not column else cell.rjust(widths[column]) for column, cell in enumerate(row)])
        for row in rows
    ]
    return "\n".join([text[0], _line(rule), *text[1:]])


def _row(result: Result) -> tuple[str, ...]:
    mark = "" if result.unit == "/s" else f" {result.unit}"
    ratio = "" if result.ratio is None else f"{result.ratio:.1f} ×"
    if result.times is not None and result.ratio is not None:
        ratio += f" (≥ {result.times:g} ×)"
    return (
        result.what,
        _number(result.best) + mark,
        _number(result.median) + mark,
        str(len(result.samples)),
        _number(result.floor),
        _number(result.aim),
        ratio,
        result.verdict,
        _number(result.commits_per_s),
    )


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
