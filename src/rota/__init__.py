"""Rota: a distributed task scheduler for Python, on one database."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.domain.dependency import JobRef
    from rota.domain.errors import (
        ArgumentsError,
        ClockSkew,
        CommitUnknown,
        Conflict,
        DefinitionError,
        ExecutionCancelled,
        ExecutionError,
        ExecutionFailed,
        ExecutionSkipped,
        FailForGood,
        KeyConflict,
        LeaseLost,
        NotFinished,
        NotUnique,
        QueueFull,
        RetryIn,
        RotaError,
        Snooze,
        StoreError,
        StoreFull,
        StoreMismatch,
        StoreUnavailable,
        UnknownEvent,
        UnknownExecution,
        UnknownJob,
        UnknownSchedule,
        UsageError,
        WorkflowError,
    )
    from rota.domain.event import EventInfo
    from rota.domain.retry import Custom, Exponential, Fixed, Linear
    from rota.domain.status import Status
    from rota.domain.unique import Unique
    from rota.executors.context import Context
    from rota.sdk.app import App
    from rota.sdk.emitter import Emitter
    from rota.sdk.event_handle import EventHandle
    from rota.sdk.handle import Handle
    from rota.sdk.job import Job
    from rota.sdk.run import Run
    from rota.sdk.schedule_handle import ScheduleHandle
    from rota.sdk.workflow.workflow import Workflow
    from rota.views.attempt import Attempt, Usage
    from rota.views.callback import CallbackState
    from rota.views.dead_letter import DeadLetter
    from rota.views.event import Delivery, EventDetail
    from rota.views.execution import ExecutionDetail, StartedBy
    from rota.views.map_items import MapInfo, MapItem
    from rota.views.progress import Progress
    from rota.views.run import CriticalPath, PartialMap, RetryPlan, RunDetail
    from rota.views.schedule import LastTick, Schedule
    from rota.views.shape import Paused
    from rota.views.step import Neighbour, StepInfo, StepPlace, SubRun
    from rota.views.tick import Tick
    from rota.views.wait import WaitInfo
    from rota.views.why import Remedy, Why, WhyCheck

__version__ = "0.1.0"

__all__ = [
    "App",
    "ArgumentsError",
    "Attempt",
    "CallbackState",
    "ClockSkew",
    "CommitUnknown",
    "Conflict",
    "Context",
    "CriticalPath",
    "Custom",
    "DeadLetter",
    "DefinitionError",
    "Delivery",
    "Emitter",
    "EventDetail",
    "EventHandle",
    "EventInfo",
    "ExecutionCancelled",
    "ExecutionDetail",
    "ExecutionError",
    "ExecutionFailed",
    "ExecutionSkipped",
    "Exponential",
    "FailForGood",
    "Fixed",
    "Handle",
    "Job",
    "JobRef",
    "KeyConflict",
    "LastTick",
    "LeaseLost",
    "Linear",
    "MapInfo",
    "MapItem",
    "Neighbour",
    "NotFinished",
    "NotUnique",
    "PartialMap",
    "Paused",
    "Progress",
    "QueueFull",
    "Remedy",
    "RetryIn",
    "RetryPlan",
    "RotaError",
    "Run",
    "RunDetail",
    "Schedule",
    "ScheduleHandle",
    "Snooze",
    "StartedBy",
    "Status",
    "StepInfo",
    "StepPlace",
    "StoreError",
    "StoreFull",
    "StoreMismatch",
    "StoreUnavailable",
    "SubRun",
    "Tick",
    "Unique",
    "UnknownEvent",
    "UnknownExecution",
    "UnknownJob",
    "UnknownSchedule",
    "Usage",
    "UsageError",
    "WaitInfo",
    "Why",
    "WhyCheck",
    "Workflow",
    "WorkflowError",
]

# A name is imported when it is first used: the commands and the supervisor need few of them, and start sooner.
_HOMES = {
    "rota.domain.dependency": ("JobRef",),
    "rota.domain.event": ("EventInfo",),
    "rota.domain.retry": ("Custom", "Exponential", "Fixed", "Linear"),
    "rota.domain.status": ("Status",),
    "rota.domain.unique": ("Unique",),
    "rota.executors.context": ("Context",),
    "rota.sdk.app": ("App",),
    "rota.sdk.emitter": ("Emitter",),
    "rota.sdk.event_handle": ("EventHandle",),
    "rota.sdk.handle": ("Handle",),
    "rota.sdk.job": ("Job",),
    "rota.sdk.run": ("Run",),
    "rota.sdk.schedule_handle": ("ScheduleHandle",),
    "rota.sdk.workflow.workflow": ("Workflow",),
    "rota.views.attempt": ("Attempt", "Usage"),
    "rota.views.callback": ("CallbackState",),
    "rota.views.dead_letter": ("DeadLetter",),
    "rota.views.event": ("Delivery", "EventDetail"),
    "rota.views.execution": ("ExecutionDetail", "StartedBy"),
    "rota.views.map_items": ("MapInfo", "MapItem"),
    "rota.views.progress": ("Progress",),
    "rota.views.run": ("CriticalPath", "PartialMap", "RetryPlan", "RunDetail"),
    "rota.views.schedule": ("LastTick", "Schedule"),
    "rota.views.shape": ("Paused",),
    "rota.views.step": ("Neighbour", "StepInfo", "StepPlace", "SubRun"),
    "rota.views.wait": ("WaitInfo",),
    "rota.views.tick": ("Tick",),
    "rota.views.why": ("Remedy", "Why", "WhyCheck"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'rota' has no attribute {name!r}")
        value = getattr(import_module(_HOME.get(name, "rota.domain.errors")), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
