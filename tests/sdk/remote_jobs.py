"""The app of the tests of the client over HTTP: a worker runs its jobs, and the tests are a program elsewhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rota import App, Context, Exponential
from rota.workflow import approve, text

NAME = "remote"


def declare(app: App) -> SimpleNamespace:
    """The jobs and workflows, by name."""

    @app.job
    def add(a: int, b: int = 1) -> int:
        return a + b

    @app.job(retry=None)
    def fail(word: str) -> None:
        raise ValueError(f"no such customer: {word}")

    @app.job(retry=Exponential(attempts=2, base="10ms"))
    def twice() -> None:
        raise OSError("down")

    @app.job(retry=None)
    def check(x: int) -> int:
        if x < 0:
            raise ValueError(f"{x} is below zero")
        return x

    @app.job
    def who(ctx: Context) -> dict[str, Any]:
        return {"id": ctx.id, "headers": dict(ctx.headers)}

    @app.job(on="order.paid")
    def ship(ctx: Context, order: dict[str, str]) -> str:
        return f"{order['id']} is shipped"

    @app.workflow
    def release(build: int) -> int:
        built = add.step(build, 1)
        answer = approve(text("Release {b}?", b=built), timeout="2d", required=True)
        return check.after(answer).step(built)

    @app.workflow
    def risky(x: int) -> int:
        return add.step(check.step(add.step(x, 0)), 10)

    return SimpleNamespace(**app.jobs, **app.workflows)


app = App(NAME)
declare(app)
