"""Chain, group, chord, map and starmap: the primitives of Celery's canvas as Rota workflows.

    rota dev examples.canvas:app

In a second terminal: `rota start chord --wait`, or all of them with `python -m examples.canvas`.
"""

from __future__ import annotations

from rota import App

app = App("canvas")


@app.job
def add(x: int, y: int) -> int:
    return x + y


@app.job
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.workflow
def chain() -> int:
    return add.step(add.step(add.step(2, 2), 4), 8)


@app.workflow
def group() -> list[int]:
    return [add.step(i, i) for i in range(10)]


@app.workflow
def chord() -> int:
    return total.step([add.step(i, i) for i in range(10)])


@app.workflow
def mapped() -> list[int]:
    return total.map([list(range(10)), list(range(100))])


@app.workflow
def starmapped() -> list[int]:
    return add.starmap([(i, i) for i in range(10)])


if __name__ == "__main__":
    for run in [each.start() for each in (chain, group, chord, mapped, starmapped)]:
        print(run.result(timeout=30))
