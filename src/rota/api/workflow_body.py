"""A workflow as requests give it: the data form, checked against the jobs of its app."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.api import named
from rota.api.problem import bad_member
from rota.domain.errors import DefinitionError, WorkflowError
from rota.ops.job_definitions import JobToStore
from rota.sdk.workflow.from_file import definition_from_file
from rota.store import workflow_reader
from rota.store.port import View


def wanted(view: View, namespace: str, app: str, data: Mapping[str, Any], name: str | None = None) -> JobToStore:
    """The workflow that the data describes, or a problem that points into it. `name` is the one of the path."""
    if name is not None and data.get("name") not in (None, name):
        raise bad_member("/name", f"the name in the definition must be that of the path, {name}")
    given = {**data, **({"name": name} if name is not None else {})}
    if not isinstance(given.get("name"), str):
        raise bad_member("/name", "a workflow needs a name", "bad_field" if "name" in given else "missing_field")
    named.new_name(given["name"], "a workflow's name", pointer="/name")
    try:
        definition = definition_from_file(given, workflow_reader.definitions(view, namespace, app))
    except WorkflowError as error:
        raise bad_member(error.pointer, str(error), "bad_workflow") from None
    except DefinitionError as error:
        raise bad_member("", str(error), "bad_definition") from None
    source = msgspec.json.encode(definition.target["graph"]).decode()
    return JobToStore(app=app, definition=definition, source=source, runs=None)


def merged(known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A definition with other members; null puts the default back."""
    return {name: value for name, value in {**known, **given}.items() if value is not None}
