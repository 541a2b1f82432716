"""Events: emitting them, and delivering each to its subscribers.

An emit inserts its event and then reads the subscriptions to its name. For each subscription that matches, it starts
the job or ends the step that waits (`deliver.py`). If there are more than a hundred subscriptions, or the emit is part
of a transaction of the caller, the event gets a row in `event_open`, and upkeep delivers it in chunks.

(event, subscriber) is the key of `delivery`, so a subscriber gets an event once. Two transactions never deliver one
event to one job at the same time: the first delivery is in the transaction of the emit, whose event no other
transaction sees yet, and every later one locks the row in `event_open`. A step that waits is locked by its row in
`waiting`, as for every other end.

A wait inserts its subscription and then reads the events that were emitted before (`waits.py`). Under READ COMMITTED an
emit and a wait that overlap do not see each other. So a wait on PostgreSQL is `unsure` at first: upkeep reads the
events once more when every emit that may have missed the wait has ended. For that an emit must have its transaction id
before it reads the subscriptions. So the insert and the read are two statements.

Locks are taken in this order: keys of events, keys of jobs (for debounce), `event_open`, the state rows, subscriptions,
and then as in `ops/runs`.
"""
