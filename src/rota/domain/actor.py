"""Who asks for a change, as the audit trail records it."""

from __future__ import annotations


class Actor(str):
    """The name of a caller, such as `token:deploys`, with the address that it called from and the id of its request."""

    __slots__ = ("address", "is_recorded_once", "request")

    address: str | None
    request: str | None
    is_recorded_once: bool
    """Its changes are parts of one action on many things, which has a row of its own in the audit trail."""

    def __new__(
        cls, name: str, address: str | None = None, request: str | None = None, *, is_recorded_once: bool = False
    ) -> Actor:
        made = super().__new__(cls, name)
        made.address, made.request, made.is_recorded_once = address, request, is_recorded_once
        return made
