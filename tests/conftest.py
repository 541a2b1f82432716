"""What holds for all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.support.databases import drop_databases

# A shell that starts the tests with `nohup` has hang-ups ignored, and every worker of a test would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="module", autouse=True)
def databases_of_the_module() -> Iterator[None]:
    yield
    drop_databases()
