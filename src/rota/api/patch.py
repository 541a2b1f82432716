"""PATCH of a definition: each member of the body replaces the stored one as a whole; null restores the default."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar, Union

import msgspec

from rota.api.problem import bad_member

S = TypeVar("S", bound=msgspec.Struct)


def patch_of(kind: type[msgspec.Struct], name: str, *, fixed: Collection[str] = ()) -> type[msgspec.Struct]:
    """The type of the body of a PATCH: all members of the definition but the `fixed` ones, each of them optional."""
    members = [
        (field.name, Union[field.type, None, msgspec.UnsetType], msgspec.UNSET)  # noqa: UP007 - of values, not of types
        for field in msgspec.structs.fields(kind)
        if field.name not in fixed
    ]
    # `patches` leads to the docstrings of the fields.
    return msgspec.defstruct(
        name,
        members,
        namespace={"patches": kind},
        frozen=True,
        kw_only=True,
        rename="camel",
        forbid_unknown_fields=True,
    )


def patched(current: S, patch: msgspec.Struct) -> S:
    """The definition with the members that the patch names. A member that is null has its default."""
    fields = {field.name: field for field in msgspec.structs.fields(type(current))}
    given: dict[str, Any] = msgspec.structs.asdict(patch)
    named = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    values = {name: _default(fields[name]) if value is None else value for name, value in named.items()}
    return msgspec.structs.replace(current, **values)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.required:
        words = f"{field.encode_name} has no default, so it cannot be null"
        raise bad_member(f"/{field.encode_name}", words, "missing_field")
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
