"""Third-party executors: whatever they return becomes an outcome that can be stored."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest

from rota.domain.claim import Claim
from rota.domain.errors import DefinitionError
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Failed, GivenBack, Snoozed, Succeeded
from rota.domain.status import Reason
from rota.domain.usage import Usage, encode
from rota.executors import kinds, third_party
from rota.executors.attempt_state import AttemptState
from rota.executors.third_party import ThirdParty
from tests.executors.test_command import claim_of

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
def test_an_invalid_outcome_is_a_permanent_failure(returned: Any) -> None:
    outcome = third_party.outcome(returned)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.permanent) == (Reason.BAD_RESULT, True)
    outcome.error.message.encode()


@pytest.mark.parametrize("returned", [Succeeded("[1]"), Snoozed(2.5), GivenBack(Reason.DRAINED)])
def test_a_valid_outcome_is_unchanged(returned: Any) -> None:
    assert third_party.outcome(returned) == returned


async def test_a_result_above_max_result_bytes_is_a_permanent_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Talkative(Clumsy):
        async def run(self, claim: Claim, state: AttemptState) -> Any:
            return Succeeded(json.dumps("x" * int(json.loads(claim.arguments)["length"])))

    monkeypatch.setattr(kinds, "_added", lambda kind: lambda data, rules: Talkative())
    executor = kinds.executor({"kind": "talkative"}, Rules(), 1024)
    fits, too_large = claim_of({"length": 1022}), claim_of({"length": 1023})
    assert isinstance(await executor.run(fits, AttemptState(fits, None)), Succeeded)
    outcome = await executor.run(too_large, AttemptState(too_large, None))
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.permanent, outcome.error.type) == (Reason.BAD_RESULT, True, "ResultError")
    assert "the result would take 1,025 bytes of JSON; at most 1,024 are stored" in outcome.error.message


@pytest.mark.parametrize("told", ["much", object(), Usage("much"), Usage(math.nan)])  # type: ignore[arg-type]
def test_usage_that_cannot_be_stored_is_left_out(told: Any) -> None:
    assert third_party.usage(told) is None


def test_valid_usage_is_unchanged() -> None:
    usage = third_party.usage(Usage(1.5, 2, 0))
    assert usage is not None
    assert json.loads(encode(usage)) == {"cpu_s": 1.5, "peak_bytes": 2, "exit_code": 0}


class Clumsy:
    rules = Rules()
    completions = None
    begins_later = False
    grace_s: Any = math.nan
    missing: Any = None

    async def run(self, claim: Claim, state: AttemptState) -> Any:
        state.usage = "much"  # type: ignore[assignment]
        return "done"

    def abandon(self) -> None:
        raise RuntimeError("cannot")


async def test_outcome_and_usage_of_an_executor_are_checked() -> None:
    claim = claim_of({})
    state = AttemptState(claim, None)
    assert isinstance(await ThirdParty(Clumsy(), "clumsy").run(claim, state), Failed)
    assert state.usage is None


@pytest.mark.parametrize("grace", [math.nan, math.inf, -5])
def test_a_grace_is_always_a_finite_number(grace: Any) -> None:
    clumsy = Clumsy()
    clumsy.grace_s = grace
    assert 0 <= ThirdParty(clumsy, "clumsy").grace_s < math.inf


@pytest.mark.parametrize("grace", ["long", None])
def test_a_grace_that_is_no_number_is_refused_when_its_job_is_declared(grace: Any) -> None:
    clumsy = Clumsy()
    clumsy.grace_s = grace
    with pytest.raises(DefinitionError, match="clumsy: grace_s of its executor must be a number"):
        ThirdParty(clumsy, "clumsy")


def test_an_executor_that_cannot_abandon_does_not_block_others() -> None:
    ThirdParty(Clumsy(), "clumsy").abandon()


def test_an_incomplete_executor_is_refused_when_its_job_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_added", lambda kind: lambda data, rules: SimpleNamespace(completions=None))
    with pytest.raises(DefinitionError, match="has no 'rules'"):
        kinds.executor({"kind": "clumsy"}, Rules(), 1024)


@pytest.mark.parametrize(("says", "missing"), [(None, ""), (7, "7"), ("a driver", "a driver")])
def test_any_value_of_missing_is_reported_as_text(says: Any, missing: str) -> None:
    clumsy = Clumsy()
    clumsy.missing = says
    assert ThirdParty(clumsy, "clumsy").missing == missing


def test_an_executor_whose_missing_raises_runs_no_job() -> None:
    class Broken(Clumsy):
        @property
        def missing(self) -> str:
            raise OSError("no bus")

    assert ThirdParty(Broken(), "broken").missing == "its executor failed: no bus"
