"""Overrides: options of one execution that replace those of its job: timeout, retry policy, version of a workflow."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain import retry
from rota.domain.errors import DefinitionError
from rota.domain.lifecycle import Rules


class Overrides(msgspec.Struct, frozen=True, omit_defaults=True):
    """None keeps the rule of the job; a timeout of 0 means no timeout. `retry` has the form of `retry.describe`."""

    timeout_s: float | None = None
    retry: dict[str, Any] | None = None
    version: int | None = None
    """The version of the workflow that a run has, instead of the one in force."""


decode = msgspec.json.Decoder(Overrides).decode


def encode(timeout_s: float | None, policy: retry.Policy | None) -> str | None:
    """The stored JSON; None without overrides."""
    if timeout_s is None and policy is None:
        return None
    return msgspec.json.encode(Overrides(timeout_s, None if policy is None else described(policy))).decode()


def of_version(number: int) -> str:
    """The stored JSON for a run of that version."""
    return msgspec.json.encode(Overrides(version=number)).decode()


def version(stored: str | None) -> int | None:
    """The version that a run was started with; None for the one in force."""
    return None if stored is None else decode(stored).version


def applied(rules: Rules, stored: str | None) -> Rules:
    """The rules of an execution. Which errors are retried at all remains the job's decision."""
    if stored is None:
        return rules
    given = decode(stored)
    changes: dict[str, Any] = {}
    if given.timeout_s is not None:
        changes["timeout_s"] = given.timeout_s or None
    if given.retry is not None:
        own = rules.retry
        changes["retry"] = msgspec.structs.replace(retry.described(given.retry), only=own.only, never=own.never)
    return msgspec.structs.replace(rules, **changes)


def described(policy: retry.Policy) -> dict[str, Any]:
    """Without exception classes and callables: these exist in the job's code only."""
    if isinstance(policy, retry.Custom):
        raise DefinitionError("options(retry=) is stored: give a number of attempts or a policy, not a callable")
    if policy.only or policy.never:
        raise DefinitionError("options(retry=) is stored, and only= and never= are not: give these to the job itself")
    default = type(policy)()
    return {
        name: value
        for name, value in policy.describe().items()
        if name in ("policy", "attempts") or (name not in ("only", "never") and value != default.describe()[name])
    }
