"""Workflows of an app from graphs as data."""

from __future__ import annotations

from typing import Any

from rota import App, Workflow


def add_workflow(app: App, name: str, *steps: dict[str, Any], result: Any = None, **more: Any) -> Workflow[..., Any]:
    """Each takes one argument, `x`."""
    graph = {"rota": "workflow/1", "name": name, "parameters": {"x": {}}, "steps": list(steps), "result": result}
    return app.workflow_from({**graph, **more})
