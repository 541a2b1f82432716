"""Random workflows in the data form, drawn from a seeded generator, and the run of one in a random order of ends."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from rota.domain.workflow import rules
from rota.domain.workflow.advance import Advanced, advance, must_stop
from rota.domain.workflow.graph import Graph, decode
from rota.domain.workflow.letters import OPEN, UNDECIDED, is_over, status_of, with_ends
from tests.workflow.oracle import Data, Oracle
import msgspec
