"""Templates of jobs: put and delete them. Jobs keep what they were made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rota.domain import job_template, names
from rota.domain.errors import DefinitionError, NameTaken
from rota.ids import is_id
from rota.ops.audit import audit
from rota.store import definition_reader as reader
from rota.store.definition_reader import TemplateRow
from rota.store.port import Tx

Condition = Callable[[TemplateRow | None], None]


def anything(_: TemplateRow | None) -> None:
    """The condition of a caller that expects nothing."""


def put(
    tx: Tx,
    namespace: str,
    name: str,
    content: Mapping[str, Any],
    actor: str,
    condition: Condition = anything,
    *,
    only_new: bool = False,
) -> tuple[TemplateRow, bool]:
    """The template, and whether it is new. The same content changes nothing."""
    names.check(name, "a template's name")
    if is_id(name.lower()):
        raise DefinitionError("a template's name cannot have the form of an id")
    job_template.check(content.get("parameters") or {}, content["job"])
    tx.run("add_namespace", namespace=namespace)
    known = reader.template(tx, namespace, name)
    condition(known)
    if known is not None and only_new:
        raise NameTaken(f"there is a template {name}: change it, or choose another name")
    text = msgspec.json.encode(content, order="sorted").decode()
    if known is None or known.content != text:
        tx.run("put_template", namespace=namespace, name=name, content=text, actor=actor)
        before = None if known is None else msgspec.Raw(known.content.encode())
        audit(tx, namespace, actor, "template.put", name, before=before, after=msgspec.Raw(text.encode()))
    row = reader.template(tx, namespace, name)
    assert row is not None, "it was written in this transaction"
    return row, known is None


def delete(tx: Tx, namespace: str, name: str, actor: str, condition: Condition = anything) -> bool:
    """False if there is none. Jobs that were made of it stay."""
    known = reader.template(tx, namespace, name)
    condition(known)
    if known is None:
        return False
    tx.run("drop_template", namespace=namespace, name=name)
    audit(tx, namespace, actor, "template.delete", name, before=msgspec.Raw(known.content.encode()))
    return True
