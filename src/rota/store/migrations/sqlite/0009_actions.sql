-- Actions on many executions, runs, events, schedules or jobs at once.

-- `filter` and `options` are JSON, `errors` a JSON list. The ids are collected first, up to `mark`, then acted on in the
-- order of their positions: the first `done` + `failed` of them have been. `next_at` is when an open action is looked at
-- next; null if it has ended.
CREATE TABLE action (
    id           TEXT PRIMARY KEY,
    at_most      INTEGER NOT NULL,
    as_of        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    started_at   INTEGER,
    completed_at INTEGER,
    cancel_at    INTEGER,
    next_at      INTEGER,
    total        INTEGER NOT NULL DEFAULT 0,
    done         INTEGER NOT NULL DEFAULT 0,
    failed       INTEGER NOT NULL DEFAULT 0,
    rate         REAL,
    namespace    TEXT NOT NULL,
    actor        TEXT NOT NULL,
    verb         TEXT NOT NULL,
    target       TEXT NOT NULL,
    filter       TEXT NOT NULL,
    options      TEXT NOT NULL,
    note         TEXT,
    status       TEXT NOT NULL,
    mark         TEXT,
    errors       TEXT NOT NULL DEFAULT '[]'
);
CREATE INDEX action_namespace ON action (namespace, id);
CREATE INDEX action_next ON action (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE action_item (
    action   TEXT NOT NULL,
    position INTEGER NOT NULL,
    subject  TEXT NOT NULL,
    PRIMARY KEY (action, position)
);
