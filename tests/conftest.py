"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.support import databases, environment, ownership

environment.prepare()
ownership.watch_processes()

HAS_FAILED = pytest.StashKey[bool]()
QUICK = {"conformance", "cron", "domain", "notes", "schedules", "sdk", "tests"}
"""The folders whose tests need neither processes nor PostgreSQL, unless their name or a parameter says `postgres`."""
NOT_QUICK = {"test_plans.py", "test_races.py", "test_types.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path
        if path.parent.name in QUICK and path.name not in NOT_QUICK and "postgres" not in item.nodeid:
            item.add_marker(pytest.mark.quick)
        if shares_fixtures(item) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(path.stem))


def shares_fixtures(item: pytest.Item) -> bool:
    """Whether the test uses a fixture of its module, which each process with a test of the module has to set up."""
    info = getattr(item, "_fixtureinfo", None)
    found = {} if info is None else info.name2fixturedefs
    return any(found[name][-1].scope == "module" for name in found if name != databases_of_the_module.__name__)


@pytest.fixture(scope="module", autouse=True)
def databases_of_the_module() -> Iterator[None]:
    yield
    databases.release(databases.of_module)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    with ownership.shared():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[HAS_FAILED] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        started = ownership.started()
        left = ownership.end_leftovers()
        databases.release(databases.of_test)
        if item.stash.get(HAS_FAILED, False):
            left += ownership.drop_leftovers()
        if left:
            pytest.fail(f"{item.nodeid} left behind: {', '.join(left)}", pytrace=False)
        if started and item.get_closest_marker("quick"):
            pytest.fail(f"{item.nodeid} is run by `make quick` and starts processes: {started}", pytrace=False)
