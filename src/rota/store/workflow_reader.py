"""Reads workflows as the HTTP API shows them."""

from __future__ import annotations

from rota.domain import job, requirement
from rota.domain.job import Definition
from rota.store.definition_reader import JobRow
from rota.store.port import View


def workflows(view: View, namespace: str) -> list[JobRow]:
    """By name and app."""
    found = view.records("workflows_in_force", JobRow, namespace=namespace, workflow=requirement.WORKFLOW)
    return sorted(found, key=lambda row: (row.name, row.app))


def open_runs(view: View, namespace: str) -> dict[tuple[str, str], int]:
    """How many runs of each workflow are open, by app and name; sub-runs count too."""
    return {(app, name): count for app, name, count in view.rows("open_runs_by_workflow", namespace=namespace)}


def definitions(view: View, namespace: str, app: str) -> dict[str, Definition]:
    """The definitions in force of an app's jobs and workflows, by name."""
    found = [job.decode(text) for (text,) in view.rows("definitions_of_app", namespace=namespace, app=app)]
    return {one.name: one for one in found}
