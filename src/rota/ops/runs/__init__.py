"""Runs of workflows, in the transactions that already exist.

A run is an execution of a job of kind `workflow`. It is enqueued, delayed, scheduled and paused like any other. When a
worker claims it, a row gate opens it in place of starting it (`gates/open_runs.py`): the execution moves to `waiting`
behind a blocker of kind `run`, and a row in `run` holds one letter per step. Steps are executions too; their rows carry
the id of the run from table to table, so a finish knows it without a read.

When steps end, `after_end` calls `advance.py` in the same transaction: it locks the run, asks `domain/workflow` what
follows, and places the next steps. The last end of a run ends its execution, which may be a step of another run.

Locks are taken in one order everywhere: the state rows of executions, `map_open`, then for each level of nesting, the
deepest first, `map_tally` and `run`, in the order of their keys.

Results are stored once. A step that needs the result of another has a reference in `inputs`, which a row gate resolves
when the step is claimed (`gates/step_inputs.py`).

A retry is a new run that refers to the old executions of the steps that it keeps (`retry.py`). Its sub-runs open as
retries of the earlier sub-runs, if their arguments are the same (`sub_retry.py`).

A run that failed or was cancelled is undone by a second run, whose graph has the reversed edges (`undo.py`).
"""
