"""Dry runs: a write is carried out, shown and rolled back."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.api.answer import Answer, shown


class Dry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`dryRun=true` shows what the request would lead to, and changes nothing."""

    dry_run: bool = False


def would(value: Any) -> Answer:
    """The answer to a dry run."""
    return shown({"dryRun": True, "would": value})
