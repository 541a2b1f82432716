"""The kill test: real processes, real signals, one SQLite file, and three witnesses.

    enqueuers ──journal──▶ what was accepted        (they are killed as well, and say again what they got no answer to)
    workers ───effects──▶ receiver ──file──▶ what was done outside     (never killed)
    workers ─────────────▶ the database             what Rota says happened

A run starts all of them at once on a file that does not exist yet, kills and stops processes at random while
executions run, then lets everything come to rest and compares the witnesses (`check.py`). By hand:

    python -m tests.kill --kills 2000 --seed 7
"""
