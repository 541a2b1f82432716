"""Rota: a distributed task scheduler for Python, on one database."""

from __future__ import annotations

from rota.domain.errors import (
    ArgumentsError,
    Conflict,
    DefinitionError,
    ExecutionCancelled,
    ExecutionError,
    ExecutionFailed,
    ExecutionSkipped,
    FailForGood,
    KeyConflict,
    NotFinished,
    NotUnique,
    QueueFull,
    RetryIn,
    RotaError,
    Snooze,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
    UnknownExecution,
    UnknownJob,
    UsageError,
)
from rota.domain.retry import Custom, Exponential, Fixed, Linear
from rota.domain.status import Status
from rota.domain.unique import Unique
from rota.executors.context import Context
from rota.sdk.app import App
from rota.sdk.handle import Handle
from rota.sdk.job import Job

__version__ = "0.1.0"

__all__ = [
    "App",
    "ArgumentsError",
    "Conflict",
    "Context",
    "Custom",
    "DefinitionError",
    "ExecutionCancelled",
    "ExecutionError",
    "ExecutionFailed",
    "ExecutionSkipped",
    "Exponential",
    "FailForGood",
    "Fixed",
    "Handle",
    "Job",
    "KeyConflict",
    "Linear",
    "NotFinished",
    "NotUnique",
    "QueueFull",
    "RetryIn",
    "RotaError",
    "Snooze",
    "Status",
    "StoreError",
    "StoreMismatch",
    "StoreUnavailable",
    "Unique",
    "UnknownExecution",
    "UnknownJob",
    "UsageError",
]
