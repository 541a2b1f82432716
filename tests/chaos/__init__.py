"""The chaos run: every kind of job under every kind of blow, and the three witnesses of the kill test.

    enqueuers ──journal──▶ what was accepted, refused and cancelled     (they are killed as well)
    workers ───effects──▶ receiver ──file──▶ what was done outside      (never killed)
    workers ─────────────▶ the database                                 what Rota says happened

A seeded deck of faults (`storm.py`) hits supervisors, worker processes, spawners, the processes of isolated jobs,
commands and what those have started, enqueuers, and everybody at once; some are stopped for three leases, some drained,
and connections to PostgreSQL are ended from the server's side. Then everything comes to rest, `check.py` compares the
witnesses, and `measures.py` says how soon and how often.

What an execution is meant to come to is in `designs.py`. The success rate is taken of those that *may* succeed: not
those that are poison, have bad content, take too long by design or are cancelled. An execution that ended as a crash
loop because we killed it three times, each time as the only one to blame, is charged to us and counted apart; each of
its crashes must be explained by a blow of ours (`blame.py`), or that is a violation. The availability is the share of
seconds in which an enqueue was accepted and an attempt started; it is also told without the seconds in which everybody
had just been killed at once.

    python -m tests.chaos --database postgres --minutes 30 --kills 5000 --seed 7
"""
