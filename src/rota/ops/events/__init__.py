"""Events: emitting them, and giving each to its subscribers.

An emit inserts its event and then looks for subscriptions with the name. It starts a job for each match, and ends each
step that waits for the event (`deliver.py`). If there are more than a hundred subscriptions, or the emit is part of a
transaction of the caller, the event gets a row in `event_open`, and upkeep delivers it in chunks.

(event, subscriber) is the key of `delivery`, so a subscriber gets an event once. Two transactions never deliver one
event to one job at once: the first one is that of the emit, which no other transaction sees yet, and all later ones
hold the row in `event_open`. A step that waits is locked by its row in `waiting`, as for every other end.

A wait inserts its subscription and then looks for events that were there before (`waits.py`). Under READ COMMITTED an
emit and a wait that overlap do not see each other, so a wait on PostgreSQL is `unsure` at first: upkeep looks for
events once more when every emit that may have missed the wait has ended. For that an emit must have its transaction id
before it looks: the insert and the look are two statements.

Locks are taken in this order: keys of events, keys of jobs (for debounce), `event_open`, the state rows, subscriptions,
and then as in `ops/runs`.
"""
