"""What the jobs of a chaos run are meant to come to: the yardstick of its checker and of its success rate."""

from __future__ import annotations

from enum import StrEnum

from rota.sdk.app import registry_of
from tests.chaos import jobs


class Design(StrEnum):
    """How an execution of a job is meant to end."""

    SUCCEEDS = "succeeds"
    EXHAUSTS = "exhausts its attempts"
    POISON = "kills its process every time"
    BAD_RESULT = "returns what cannot be stored"
    RAISES = "raises at once"
    CANCELLED = "is cancelled by its enqueuer"


DESIGNS: dict[str, Design] = {
    "quick": Design.SUCCEEDS,
    "threaded": Design.SUCCEEDS,
    "isolated": Design.SUCCEEDS,
    "flaky": Design.SUCCEEDS,
    "stepped": Design.SUCCEEDS,
    "noisy": Design.SUCCEEDS,
    "command": Design.SUCCEEDS,
    "noisy_command": Design.SUCCEEDS,
    "call": Design.SUCCEEDS,
    "second": Design.SUCCEEDS,
    "other_second": Design.SUCCEEDS,
    "doomed": Design.EXHAUSTS,
    "overrun": Design.EXHAUSTS,
    "overrun_threaded": Design.EXHAUSTS,
    "overrun_isolated": Design.EXHAUSTS,
    "overrun_command": Design.EXHAUSTS,
    "poison": Design.POISON,
    "poison_isolated": Design.POISON,
    "object_result": Design.BAD_RESULT,
    "nul_result": Design.BAD_RESULT,
    "large_result": Design.BAD_RESULT,
    "strange_error": Design.RAISES,
    "long": Design.CANCELLED,
    "long_threaded": Design.CANCELLED,
    "long_isolated": Design.CANCELLED,
    "long_command": Design.CANCELLED,
    "ghost": Design.CANCELLED,
}
"""`ghost` is a job that no worker has."""

ELSEWHERE = frozenset(name for name, job in registry_of(jobs.app).jobs.items() if job.definition.target.get("kind"))
"""The jobs whose bodies are in other processes than the worker."""

WEIGHTS: dict[str, float] = {
    "quick": 36,
    "threaded": 16,
    "isolated": 2.5,
    "flaky": 4,
    "stepped": 4,
    "noisy": 0.1,
    "command": 22,
    "noisy_command": 0.1,
    "call": 8,
    "doomed": 1,
    "overrun": 0.7,
    "overrun_threaded": 0.7,
    "overrun_isolated": 0.4,
    "overrun_command": 0.6,
    "poison": 0.15,
    "poison_isolated": 0.3,
    "object_result": 0.5,
    "nul_result": 0.5,
    "large_result": 0.3,
    "strange_error": 0.5,
    "long": 0.8,
    "long_threaded": 0.8,
    "long_isolated": 0.5,
    "long_command": 0.8,
    "ghost": 0.15,
}
"""How often the enqueuers choose each, relative to the others."""

PERIODS_S = {"second": 1, "other_second": 2}
"""The schedules, and their distance from tick to tick."""
