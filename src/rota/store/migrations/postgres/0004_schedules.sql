-- Schedules, what became of their ticks, and calendars.

-- All ticks up to `cursor` have been decided. `next_at` is when to look again; null if paused, over, or waiting for
-- the end of `waits_for`, and then it comes `delay` after that. One that was removed stays as long as its ledger.
CREATE TABLE schedule (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cursor         bigint NOT NULL,
    next_at        bigint,
    revision       bigint NOT NULL DEFAULT 1,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    paused_at      bigint,
    removed_at     bigint,
    delay          bigint,
    last_at        bigint,
    last_late      bigint,
    waits_for      uuid,
    last_execution uuid,
    shard          integer NOT NULL,
    namespace      text NOT NULL,
    app            text NOT NULL,
    name           text NOT NULL,
    job            text NOT NULL,
    origin         text NOT NULL,
    spec           text NOT NULL,
    held           text NOT NULL DEFAULT '[]',
    last_outcome   text,
    paused_by      text,
    paused_note    text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- The name first: that is where two schedules differ, and every tick compares.
CREATE UNIQUE INDEX schedule_name ON schedule (name, app, namespace) WHERE removed_at IS NULL;
CREATE INDEX schedule_code ON schedule (namespace, app, name) WHERE origin = 'code' AND removed_at IS NULL;
CREATE INDEX schedule_due ON schedule (shard, next_at);
CREATE INDEX schedule_waits ON schedule (waits_for) WHERE waits_for IS NOT NULL;

-- One row for each tick that was decided by itself, or for a range of `count` ticks with one outcome.
CREATE TABLE tick (
    schedule   bigint NOT NULL,
    at         bigint NOT NULL,
    until      bigint NOT NULL,
    count      bigint NOT NULL,
    decided_at bigint NOT NULL,
    execution  uuid,
    outcome    text NOT NULL,
    PRIMARY KEY (schedule, at)
);

CREATE TABLE calendar (
    namespace  text NOT NULL,
    name       text NOT NULL,
    days       text NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (namespace, name)
);

ALTER TABLE execution ADD COLUMN catch_up smallint;
