"""Executors of others: what they return, however odd, becomes an outcome that can be stored."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from rota.domain.errors import DefinitionError
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Failed, GivenBack, Snoozed, Succeeded
from rota.domain.status import Reason
from rota.domain.usage import Usage, encode
from rota.executors import kinds, trust
from rota.executors.command import Command, CommandExecutor

RUBBISH: list[Any] = [
    None,
    "done",
    object(),
    Succeeded,
    Succeeded(object()),  # type: ignore[arg-type]
    Succeeded("{not json"),
    Succeeded('"\\u0000"'),
    Succeeded('"\ud800"'),
    Failed("no error"),  # type: ignore[arg-type]
    Snoozed(math.nan),
    Snoozed(-1),
    GivenBack(Reason.DRAINED, math.inf),
]


@pytest.mark.parametrize("returned", RUBBISH)
def test_rubbish_is_a_failure_for_good(returned: Any) -> None:
    outcome = trust.outcome(returned)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.permanent) == (Reason.BAD_RESULT, True)
    outcome.error.message.encode()


@pytest.mark.parametrize("returned", [Succeeded("[1]"), Snoozed(2.5), GivenBack(Reason.DRAINED)])
def test_an_outcome_is_left_as_it_is(returned: Any) -> None:
    assert trust.outcome(returned) == returned


@pytest.mark.parametrize("told", ["much", object(), Usage("much"), Usage(math.nan)])  # type: ignore[arg-type]
def test_a_cost_that_cannot_be_stored_is_left_out(told: Any) -> None:
    assert trust.usage(told) is None


def test_a_cost_is_left_as_it_is() -> None:
    usage = trust.usage(Usage(1.5, 2, 0))
    assert usage is not None
    assert json.loads(encode(usage)) == {"cpu_s": 1.5, "peak_bytes": 2, "exit_code": 0}


def test_only_our_own_executors_are_believed() -> None:
    class Theirs(CommandExecutor):
        pass

    command = Command(argv=["true"])
    assert trust.is_ours(CommandExecutor(command, Rules()))
    assert not trust.is_ours(Theirs(command, Rules()))
    assert not trust.is_ours(Clumsy())  # type: ignore[arg-type]


class Clumsy:
    grace_s: Any = math.nan

    def abandon(self) -> None:
        raise RuntimeError("cannot")


@pytest.mark.parametrize("grace", [math.nan, math.inf, -5, "long", None])
def test_a_grace_is_always_a_number(grace: Any) -> None:
    clumsy: Any = Clumsy()
    clumsy.grace_s = grace
    assert 0 <= trust.grace_s(clumsy) < math.inf


def test_one_that_cannot_be_abandoned_does_not_keep_others_from_it() -> None:
    clumsy: Any = Clumsy()
    trust.abandon(clumsy)


def test_an_executor_that_lacks_something_is_refused_when_its_job_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_added", lambda kind: lambda data, rules: Clumsy())
    with pytest.raises(DefinitionError, match="has no 'rules'"):
        kinds.executor({"kind": "clumsy"}, Rules())
