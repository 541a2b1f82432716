-- Schedules, what became of their ticks, and calendars.

-- What its owner says. One that was removed stays as long as its ledger.
CREATE TABLE schedule (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    revision       INTEGER NOT NULL DEFAULT 1,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    paused_at      INTEGER,
    removed_at     INTEGER,
    namespace      TEXT NOT NULL,
    app            TEXT NOT NULL,
    name           TEXT NOT NULL,
    job            TEXT NOT NULL,
    origin         TEXT NOT NULL,
    spec           TEXT NOT NULL,
    paused_by      TEXT,
    paused_note    TEXT
);
CREATE UNIQUE INDEX schedule_name ON schedule (name, app, namespace) WHERE removed_at IS NULL;
-- Also of those that were removed: their ledger goes by that name as well.
CREATE INDEX schedule_ever ON schedule (name, app, namespace);
CREATE INDEX schedule_job ON schedule (job, namespace) WHERE removed_at IS NULL;
CREATE INDEX schedule_code ON schedule (namespace, app, name) WHERE origin = 'code' AND removed_at IS NULL;

-- Where the hand of its clock stands: what moves with every tick, and so is kept apart from what does not. All ticks
-- up to `cursor` have been decided. `next_at` is when to look again; null if paused, over, or waiting for the end of
-- `waits_for`, and then it comes `delay` after that. With another revision than its schedule it is not of now.
CREATE TABLE hand (
    schedule       INTEGER PRIMARY KEY,
    revision       INTEGER NOT NULL,
    cursor         INTEGER NOT NULL,
    next_at        INTEGER,
    delay          INTEGER,
    last_at        INTEGER,
    last_late      INTEGER,
    waits_for      TEXT,
    last_execution TEXT,
    shard          INTEGER NOT NULL,
    held           TEXT NOT NULL DEFAULT '[]',
    last_outcome   TEXT
);
CREATE INDEX hand_due ON hand (shard, next_at);
CREATE INDEX hand_waits ON hand (waits_for) WHERE waits_for IS NOT NULL;

-- One row for each tick that was decided by itself, or for a range of `count` ticks with one outcome. The ledger is
-- kept for longer than history: when an execution goes, how it `ended` is written here.
CREATE TABLE tick (
    schedule   INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    decided_at INTEGER NOT NULL,
    execution  TEXT,
    outcome    TEXT NOT NULL,
    ended      TEXT,
    PRIMARY KEY (schedule, at)
) WITHOUT ROWID;
-- The ledger is read between two instants: a range that reaches into that time is found by its end.
CREATE INDEX tick_ranges ON tick (schedule, until) WHERE until > at;

CREATE TABLE calendar (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    days       TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

ALTER TABLE execution ADD COLUMN catch_up INTEGER;
