"""Workflows of an app from graphs as data."""

from __future__ import annotations

from typing import Any

from rota import App, Job
from rota.domain.job import Definition
from rota.domain.requirement import Needs


def add_workflow(app: App, name: str, *steps: dict[str, Any], result: Any = None, **more: Any) -> Job[..., Any, Any]:
    """Each takes one argument, `x`."""
    graph = {"rota": "workflow/1", "name": name, "steps": list(steps), "result": result, **more}
    definition = Definition(
        name=name,
        target={"kind": "workflow", "graph": graph},
        needs=Needs(workflow=True),
        parameters={"x": {"required": True}},
    )

    @app.job(name=name)
    def workflow(x: Any) -> Any:
        raise AssertionError("a run has no body")

    app.jobs[name].definition = definition
    app._definitions[-1] = definition
    return app.jobs[name]
