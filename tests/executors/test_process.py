"""The pool of processes, where it cannot start one; what it does when it can is tests/engine/test_elsewhere.py."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import pytest

from rota.domain.lifecycle import Rules
from rota.domain.outcome import Failed
from rota.executors.context import Context
from rota.executors.process import Pool, ProcessExecutor
from tests.executors.test_command import claim_of


def fail(*_: object) -> None:
    raise OSError(24, "Too many open files")


@pytest.mark.parametrize(("module", "name"), [(socket, "socketpair"), (os, "pipe2")])
async def test_without_descriptors_in_the_worker_an_attempt_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    before, claim = sorted(os.listdir("/proc/self/fd")), claim_of({})
    with monkeypatch.context() as patched:
        failing: Callable[..., None] = fail
        patched.setattr(module, name, failing)
        outcome = await ProcessExecutor(Pool(["no-such-program"]), Rules()).run(claim, Context(claim, None))
    assert isinstance(outcome, Failed)
    assert not outcome.permanent
    assert "Too many open files" in outcome.error.message
    assert sorted(os.listdir("/proc/self/fd")) == before, "nothing is left open"
