"""Gates: what a claim may not take, each in a file of its own.

A lane gate looks at lanes before anything is taken from them, and bounds how many executions may be taken. A row gate
looks at the executions that were taken, and puts those back that may not start. `ops/claim.py` has the two lists: a new
limit is a new file here and an entry there.

Three conditions are part of the statements that find lanes, because they spare reading them: the worker has the job, it
serves the queue, and the queue is not paused.
"""
