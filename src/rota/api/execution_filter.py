"""The filters of executions as parameters of a URL, for lists, counts and actions on many."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from rota.domain.instant import instant
from rota.domain.status import Status
from rota.store.execution_reader import Criteria

MOST_VALUES = 100
_Texts = Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_VALUES)]


class ExecutionFilter(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which executions. Different parameters must all hold; a repeated one means any of its values, but `tag` all."""

    status: Annotated[tuple[Status, ...], msgspec.Meta(max_length=len(Status))] = ()
    job: Annotated[_Texts, msgspec.Meta(description="A name or an id.")] = ()
    app: _Texts = ()
    queue: _Texts = ()
    tag: Annotated[_Texts, msgspec.Meta(description="Repeated: the executions that have all of them.")] = ()
    reason: _Texts = ()
    error_type: Annotated[_Texts, msgspec.Meta(description="The class of the last error, such as ValueError.")] = ()
    error: Annotated[
        str | None, msgspec.Meta(description="A part of the text of the last error; upper and lower case are the same.")
    ] = None
    created_from: Annotated[
        datetime | None, msgspec.Meta(description="A time, or a duration: 2h is two hours ago.")
    ] = None
    created_to: Annotated[datetime | None, msgspec.Meta(description="Not included.")] = None
    worker: Annotated[_Texts, msgspec.Meta(description="A name or an id.")] = ()
    schedule: Annotated[_Texts, msgspec.Meta(description="A name or an id.")] = ()
    run: _Texts = ()
    parent: _Texts = ()
    replay_of: _Texts = ()
    key: _Texts = ()
    """The key."""
    actor: _Texts = ()
    dead: Annotated[bool | None, msgspec.Meta(description="Whether it is a dead letter.")] = None
    id: _Texts = ()
    """Up to 100 ids."""
    fingerprint: Annotated[
        _Texts,
        msgspec.Meta(description="The fingerprint of an error, as /errors has it: dead letters with this error."),
    ] = ()


def wanted(query: ExecutionFilter) -> Criteria:
    """The filters for the store."""
    values = {name: getattr(query, name) for name in ExecutionFilter.__struct_fields__}
    for name in ("created_from", "created_to"):
        values[name] = None if values[name] is None else instant(values[name])
    return Criteria(**values)
