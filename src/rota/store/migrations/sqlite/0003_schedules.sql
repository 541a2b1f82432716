-- Schedules, what became of their ticks, and calendars.

-- All ticks up to `cursor` have been decided. `next_at` is when to look again; null if paused, over, or waiting for
-- the end of `waits_for`, and then it comes `delay` after that. One that was removed stays as long as its ledger.
CREATE TABLE schedule (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    cursor         INTEGER NOT NULL,
    next_at        INTEGER,
    revision       INTEGER NOT NULL DEFAULT 1,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    paused_at      INTEGER,
    removed_at     INTEGER,
    delay          INTEGER,
    last_at        INTEGER,
    last_late      INTEGER,
    waits_for      TEXT,
    last_execution TEXT,
    shard          INTEGER NOT NULL,
    namespace      TEXT NOT NULL,
    app            TEXT NOT NULL,
    name           TEXT NOT NULL,
    job            TEXT NOT NULL,
    origin         TEXT NOT NULL,
    spec           TEXT NOT NULL,
    held           TEXT NOT NULL DEFAULT '[]',
    last_outcome   TEXT,
    paused_by      TEXT,
    paused_note    TEXT
);
-- The name first: that is where two schedules differ, and every tick compares.
CREATE UNIQUE INDEX schedule_name ON schedule (name, app, namespace) WHERE removed_at IS NULL;
CREATE INDEX schedule_code ON schedule (namespace, app, name) WHERE origin = 'code' AND removed_at IS NULL;
CREATE INDEX schedule_due ON schedule (shard, next_at);
CREATE INDEX schedule_waits ON schedule (waits_for) WHERE waits_for IS NOT NULL;

-- One row for each tick that was decided by itself, or for a range of `count` ticks with one outcome.
CREATE TABLE tick (
    schedule   INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    decided_at INTEGER NOT NULL,
    execution  TEXT,
    outcome    TEXT NOT NULL,
    PRIMARY KEY (schedule, at)
) WITHOUT ROWID;

CREATE TABLE calendar (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    days       TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

ALTER TABLE execution ADD COLUMN catch_up INTEGER;
