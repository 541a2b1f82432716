"""Gates keep a claim from taking executions that may not start, each in a file of its own.

A lane gate runs before the claim takes rows from a group of lanes, and bounds how many it may take. A row gate runs on
the executions that were taken, and moves those away that may not start. `ops/claim.py` has the two lists: a new limit
is a new file here and an entry there.

The fast path of a claim (`claim.py: _Taking.at_once`) asks no lane gate. It is only for lanes without requirements, and
only for a worker whose offers are the default (`PLAIN_OFFERS`). So a lane gate holds for a job with a requirement, or
for a worker with offers of its own (both in `domain/requirement.py`):

- A condition on some jobs is a field of `Needs`, and a lane gate.
- A condition on a worker that must hold for every lane, such as a maintenance window, is a field of `Offers`, and a
  lane gate. The claims of other workers cost no more for it.
- Any other limit is a row gate.

Each needs a check in `views/why.py`, which explains why an execution does not start. A worker does not watch lanes that
do not fit it, so a condition that passes with time leaves `Group.fits` true. `requirement.most` is cached, so it must
not depend on the time.

Some conditions are part of the statements instead, so that a claim reads no other lanes: the worker has the job and
serves the queue (`served_lanes`), the queue is not paused, and the worker is live (`claim_heads`, `claim_at_once`).
"""
