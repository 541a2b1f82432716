"""What needs attention in a namespace, worst first.

One evaluation for the overview, the list of findings and `rota doctor`. Each rule is a pure function of `Facts`. A new
one is a function in one of these files and an entry in `RULES`, a `Kind` and its tier in `finding.py`, and its facts in
`facts.py`, which `store/finding_reader.py` reads with `store/queries/finding.sql`.
"""

from __future__ import annotations

from itertools import chain

from rota.domain.findings import jobs, queues, runs, schedules, workers
from rota.domain.findings.facts import Facts
from rota.domain.findings.finding import Finding, ranked

RULES = (
    jobs.failing,
    jobs.dead_letters,
    jobs.paused,
    jobs.long_running,
    queues.without_worker,
    queues.paused,
    queues.growing,
    queues.open_breakers,
    schedules.left_out,
    schedules.overdue,
    workers.in_trouble,
    workers.lost,
    workers.late,
    runs.paused,
    runs.unanswered,
)


def evaluate(facts: Facts) -> list[Finding]:
    return ranked(chain.from_iterable(rule(facts) for rule in RULES), facts.now)
