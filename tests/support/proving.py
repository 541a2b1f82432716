"""The one way to divide a test between `make test` and `make prove`: by its parameters.

`make test` runs the parameters without the marker `prove`, `make prove` those with it.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def proof(*values: object) -> ParameterSet:
    """Parameters that only `make prove` runs."""
    return pytest.param(*values, marks=pytest.mark.prove)


def sampled(values: Iterable[object], count: int) -> list[ParameterSet]:
    """All values; `make test` runs the first `count`."""
    return [pytest.param(value) if number < count else proof(value) for number, value in enumerate(values)]
