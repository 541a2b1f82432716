"""Gates keep a claim from taking executions that may not start, each in a file of its own.

A lane gate runs before the claim takes rows from a group of lanes, and bounds how many it may take. A row gate runs on
the executions that were taken, and moves those away that may not start. `ops/claim.py` has the two lists: a new limit
is a new file here and an entry there.

The fast path of a claim (`claim.py: at_once`) takes from lanes without requirements and asks no lane gate. So a lane
gate can only bound jobs that have requirements (`domain/requirement.py`); any other limit is a row gate.

Three conditions are part of the statements that find lanes, so that other lanes are not read: the worker has the job,
it serves the queue, and the queue is not paused.
"""
