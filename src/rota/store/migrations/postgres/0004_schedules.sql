-- Schedules, what became of their ticks, and calendars.

-- What its owner says. One that was removed stays as long as its ledger.
CREATE TABLE schedule (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    revision       bigint NOT NULL DEFAULT 1,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    paused_at      bigint,
    removed_at     bigint,
    namespace      text NOT NULL,
    app            text NOT NULL,
    name           text NOT NULL,
    job            text NOT NULL,
    origin         text NOT NULL,
    spec           text NOT NULL,
    paused_by      text,
    paused_note    text
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
    schedule       bigint PRIMARY KEY,
    revision       bigint NOT NULL,
    cursor         bigint NOT NULL,
    next_at        bigint,
    delay          bigint,
    last_at        bigint,
    last_late      bigint,
    waits_for      uuid,
    last_execution uuid,
    shard          integer NOT NULL,
    held           text NOT NULL DEFAULT '[]',
    last_outcome   text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX hand_due ON hand (shard, next_at);
CREATE INDEX hand_waits ON hand (waits_for) WHERE waits_for IS NOT NULL;

-- One row for each tick that was decided by itself, or for a range of `count` ticks with one outcome. The ledger is
-- kept for longer than history: when an execution goes, how it `ended` is written here.
CREATE TABLE tick (
    schedule   bigint NOT NULL,
    at         bigint NOT NULL,
    until      bigint NOT NULL,
    count      bigint NOT NULL,
    decided_at bigint NOT NULL,
    execution  uuid,
    outcome    text NOT NULL,
    ended      text,
    PRIMARY KEY (schedule, at)
);
-- The ledger is read between two instants: a range that reaches into that time is found by its end.
CREATE INDEX tick_ranges ON tick (schedule, until) WHERE until > at;

CREATE TABLE calendar (
    namespace  text NOT NULL,
    name       text NOT NULL,
    days       text NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (namespace, name)
);

ALTER TABLE execution ADD COLUMN catch_up smallint;
