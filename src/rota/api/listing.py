"""Lists: a page of items with a cursor to the next one and to the one before, and the members that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from rota.api import cursor
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.problem import Problem, bad_parameter
from rota.api.query import Paged
from rota.views.shape import Shape

S = TypeVar("S", bound=Shape)


class Position(msgspec.Struct, frozen=True):
    """Where a page begins: behind the item with this key, in the order of the list; or before it, with `is_back`.

    Without a key at the start of the list, or with `is_back` at its end.
    """

    key: list[str] | None
    is_back: bool = False


def position(call: Call, query: Paged, is_key: Callable[[list[str]], bool] = lambda _: True) -> Position:
    """Refuses a cursor that is not of this list with these filters, or whose position is no key of the list."""
    if query.cursor is None:
        return Position(None)
    found = cursor.decode(query.cursor, cursor.fingerprint(call.namespace, call.url, query))
    if found.position and not is_key(found.position):
        raise cursor.refused()
    return Position(found.position or None, found.is_back)


def number(at: Position) -> int | None:
    """The key of a list whose items have whole numbers as ids."""
    if at.key is None:
        return None
    if len(at.key) != 1 or not at.key[0].isdigit() or len(at.key[0]) > 18:
        raise Problem("bad_cursor", "the cursor belongs to another list: start again without a cursor")
    return int(at.key[0])


def page(
    call: Call,
    query: Paged,
    kind: type[Shape],
    items: Sequence[Any],
    key: Callable[[Any], list[str]],
    *,
    has_more: bool,
    scanned_to: list[str] | None = None,
) -> Answer:
    """One page as an answer, with the cursors of its neighbours.

    `items` are in the order in which they were read: reversed if the cursor leads back (`is_back`). If the page ended
    early, because it had read as many rows as it may, `scanned_to` is the key of the last row read.
    """
    names(kind, query.fields)  # An empty list refuses an unknown name, too.
    chosen = [only(item, kind, query.fields) for item in items]
    return page_of(call, query, chosen, [key(item) for item in items], has_more=has_more, scanned_to=scanned_to)


def page_of(
    call: Call,
    query: Paged,
    items: Sequence[Any],
    keys: Sequence[list[str]],
    *,
    has_more: bool,
    scanned_to: list[str] | None = None,
) -> Answer:
    """`page` of items that have only the chosen members already, and their keys."""
    at = position(call, query)
    reached = scanned_to or (keys[-1] if keys else None)
    beyond = None if not has_more or reached is None else reached
    # An empty page has no first item; the empty key makes the cursor start at the other end of the list.
    came_from = (keys[0] if keys else reached or []) if query.cursor is not None else None
    following, before = (came_from, beyond) if at.is_back else (beyond, came_from)
    digest = cursor.fingerprint(call.namespace, call.url, query)
    return shown(
        {
            "items": list(reversed(items)) if at.is_back else list(items),
            "nextCursor": None if following is None else cursor.encode(following, digest),
            "previousCursor": None if before is None else cursor.encode(before, digest, is_back=True),
        }
    )


def of_all(
    call: Call, query: Paged, kind: type[Shape], items: Sequence[Any], key: Callable[[Any], list[str]]
) -> Answer:
    """A page of a list that is short enough to be read whole: definitions, tokens. `items` are in ascending order."""
    ordered = list(items) if query.order == "asc" else list(reversed(items))
    at = position(call, query)
    if at.is_back:
        ordered.reverse()
    if at.key is not None:
        is_ascending = (query.order == "asc") != at.is_back
        ordered = [one for one in ordered if (key(one) > at.key if is_ascending else key(one) < at.key)]
    return page(call, query, kind, ordered[: query.limit], key, has_more=len(ordered) > query.limit)


@cache
def of(kind: type[Shape]) -> type[msgspec.Struct]:
    """The type of a page of these, for the OpenAPI document."""
    fields = [("items", list[kind]), ("next_cursor", str | None), ("previous_cursor", str | None)]  # type: ignore[valid-type]
    return msgspec.defstruct(f"{kind.__name__}List", fields, rename="camel", frozen=True)


def only(item: Any, kind: type[Shape], fields: str | None) -> Any:
    """The members of an item that `fields=a,b` names; all of them without it."""
    if fields is None:
        return item
    wanted = names(kind, fields)
    values = msgspec.structs.asdict(item)
    return {encoded: values[name] for name, encoded in _encoded(kind) if encoded in wanted}


def names(kind: type[Shape], fields: str | None) -> list[str]:
    """The members that `fields` names, or all; refuses a name that the shape does not have."""
    known = [encoded for _, encoded in _encoded(kind)]
    if fields is None:
        return known
    wanted = fields.split(",")
    if unknown := [name for name in wanted if name not in known]:
        words = f"there is no member {unknown[0][:64]!r}; there are {', '.join(known)}"
        raise bad_parameter("fields", words)
    return wanted


def _encoded(kind: type[Shape]) -> list[tuple[str, str]]:
    return list(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
