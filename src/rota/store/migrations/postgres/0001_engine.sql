-- Times are whole microseconds since 1970 UTC. An execution is in exactly one of scheduled, waiting, ready, running,
-- or has one row in finished with final = 1: being in the table is being in the state.
--
-- Runs with search_path set to Rota's schema alone, so every name below is in it.

CREATE TABLE namespace (
    name       text PRIMARY KEY,
    max_depth  bigint,
    created_at bigint NOT NULL
);

CREATE TABLE queue (
    namespace   text NOT NULL,
    name        text NOT NULL,
    policy      text NOT NULL DEFAULT 'priority',
    max_depth   bigint,
    paused_at   bigint,
    paused_by   text,
    paused_note text,
    PRIMARY KEY (namespace, name)
);

-- A lane is the interned (namespace, app, queue, requirements): what a claim scans.
CREATE TABLE lane (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace    text NOT NULL,
    app          text NOT NULL,
    queue        text NOT NULL,
    requirements text NOT NULL DEFAULT '',
    UNIQUE (namespace, app, queue, requirements)
);

CREATE TABLE job (
    namespace   text NOT NULL,
    app         text NOT NULL,
    name        text NOT NULL,
    version     bigint NOT NULL,
    requirements text NOT NULL DEFAULT '',
    pause_after integer,
    failures    integer NOT NULL DEFAULT 0,
    paused_at   bigint,
    paused_by   text,
    paused_note text,
    PRIMARY KEY (namespace, app, name)
);

-- A version is keyed by its content: registering known content adds nothing and moves nothing.
CREATE TABLE job_version (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace  text NOT NULL,
    app        text NOT NULL,
    job        text NOT NULL,
    digest     text NOT NULL,
    definition text NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (namespace, app, job, digest)
);

-- Written once, never changed. Partitioned by the time in the id: history is dropped by the day, not deleted by the
-- row. The default partition takes what no other covers, and what outlives its day.
CREATE TABLE execution (
    id           uuid NOT NULL,
    created_at   bigint NOT NULL,
    run_at       bigint NOT NULL,
    deadline     bigint,
    job_version  bigint NOT NULL,
    tick         bigint,
    run          uuid,
    parent       uuid,
    replay_of    uuid,
    lane         integer NOT NULL,
    priority     integer NOT NULL,
    map_index    integer,
    namespace    text NOT NULL,
    app          text NOT NULL,
    job          text NOT NULL,
    actor        text NOT NULL,
    queue        text NOT NULL,
    arguments    text NOT NULL,
    key          text,
    schedule     text,
    step         text,
    tags         text,
    trace        text,
    limit_keys   text,
    affinity_key text,
    batch_key    text,
    cache_key    text,
    callback     text
) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX execution_id ON execution (id);
CREATE INDEX execution_job ON execution (job, id);
CREATE TABLE execution_default PARTITION OF execution DEFAULT;

-- The tables below stay small and change all the time. They are vacuumed early, and in one go.

-- What moves carries fence, counted attempts, crashes and first start. scheduled with attempts > 0 is `retrying`.
CREATE TABLE scheduled (
    id             uuid PRIMARY KEY,
    run_at         bigint NOT NULL,
    first_start_at bigint,
    lane           integer NOT NULL,
    priority       integer NOT NULL,
    fence          integer NOT NULL,
    attempts       integer NOT NULL,
    crashes        integer NOT NULL,
    reason         text
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX scheduled_due ON scheduled (run_at, id);

CREATE TABLE waiting (
    id             uuid PRIMARY KEY,
    since_at       bigint NOT NULL,
    first_start_at bigint,
    lane           integer NOT NULL,
    priority       integer NOT NULL,
    fence          integer NOT NULL,
    attempts       integer NOT NULL,
    crashes        integer NOT NULL,
    waits_for      text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX waiting_for ON waiting (waits_for);

CREATE TABLE ready (
    id             uuid NOT NULL,
    rank           bigint NOT NULL,
    first_start_at bigint,
    lane           integer NOT NULL,
    fence          integer NOT NULL,
    attempts       integer NOT NULL,
    crashes        integer NOT NULL,
    PRIMARY KEY (lane, rank, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_threshold = -1);
CREATE UNIQUE INDEX ready_id ON ready (id);

CREATE TABLE running (
    id             uuid PRIMARY KEY,
    rank           bigint NOT NULL,
    worker         bigint NOT NULL,
    first_start_at bigint NOT NULL,
    started_at     bigint NOT NULL,
    cancel_at      bigint,
    lane           integer NOT NULL,
    fence          integer NOT NULL,
    attempts       integer NOT NULL,
    crashes        integer NOT NULL,
    cancel_reason  text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_threshold = -1);
CREATE INDEX running_cancel ON running (worker) WHERE cancel_at IS NOT NULL;

-- One row for every attempt; the one with final = 1 ends the execution. Partitioned like execution.
CREATE TABLE finished (
    id          uuid NOT NULL,
    worker      bigint,
    started_at  bigint,
    finished_at bigint NOT NULL,
    fence       integer NOT NULL,
    final       integer NOT NULL,
    attempts    integer NOT NULL,
    crashes     integer NOT NULL,
    status      text NOT NULL,
    reason      text NOT NULL,
    result      text,
    error       text
) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX finished_id ON finished (id, fence);
-- Not for success: nearly all end so, and whoever looks for those finds them in the order of the ids.
CREATE INDEX finished_status ON finished (status, id) WHERE final = 1 AND status <> 'success';
CREATE TABLE finished_default PARTITION OF finished DEFAULT;

-- Failed executions that nobody has replayed or discarded yet.
CREATE TABLE dead (
    id        uuid PRIMARY KEY,
    failed_at bigint NOT NULL,
    namespace text NOT NULL,
    app       text NOT NULL,
    job       text NOT NULL,
    queue     text NOT NULL,
    reason    text NOT NULL
);
CREATE INDEX dead_job ON dead (namespace, job, id);

-- Idempotency and unique keys: (namespace, app, job, kind, key) -> the execution that holds it.
CREATE TABLE unique_key (
    namespace      text NOT NULL,
    app            text NOT NULL,
    job            text NOT NULL,
    kind           text NOT NULL,
    key            text NOT NULL,
    holder         uuid NOT NULL,
    arguments_hash text NOT NULL,
    taken_at       bigint NOT NULL,
    PRIMARY KEY (namespace, app, job, kind, key)
);

-- Start deadlines still to come; a row is only a reminder, the truth is in the state tables.
CREATE TABLE expiry (
    deadline bigint NOT NULL,
    id       uuid NOT NULL,
    PRIMARY KEY (deadline, id)
);

-- One row for every incarnation of a worker process; the lease is here. Ids are never used again.
CREATE TABLE worker (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pid          bigint NOT NULL,
    concurrency  bigint NOT NULL,
    started_at   bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    lease_until  bigint NOT NULL,
    stopped_at   bigint,
    namespace    text NOT NULL,
    app          text NOT NULL,
    name         text NOT NULL,
    host         text NOT NULL,
    version      text NOT NULL,
    offers       text NOT NULL DEFAULT '{}',
    queues       text NOT NULL,
    state        text NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX worker_live ON worker (id) WHERE stopped_at IS NULL;

CREATE TABLE audit (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    actor   text NOT NULL,
    action  text NOT NULL,
    subject text NOT NULL,
    before  text,
    after   text
);

-- Every execution and where it stands now.
CREATE VIEW state AS
SELECT x.id, x.namespace, x.app, x.job, x.job_version, x.queue, x.priority, x.actor, x.arguments, x.key, x.created_at,
       x.run_at, x.deadline, x.parent, x.replay_of, x.tags,
       CASE WHEN f.id IS NOT NULL THEN f.status
            WHEN u.id IS NOT NULL THEN 'running'
            WHEN r.id IS NOT NULL THEN 'queued'
            WHEN s.id IS NOT NULL THEN CASE WHEN s.attempts > 0 THEN 'retrying' ELSE 'scheduled' END
            WHEN w.id IS NOT NULL THEN 'waiting' END AS status,
       coalesce(f.reason, u.cancel_reason, s.reason, w.waits_for, '') AS reason,
       coalesce(f.fence, u.fence, r.fence, s.fence, w.fence) AS fence,
       coalesce(f.attempts, u.attempts, r.attempts, s.attempts, w.attempts) AS attempts,
       coalesce(f.crashes, u.crashes, r.crashes, s.crashes, w.crashes) AS crashes,
       s.run_at AS due_at,
       coalesce(f.started_at, u.started_at) AS started_at,
       f.finished_at,
       u.cancel_at,
       coalesce(f.worker, u.worker) AS worker
FROM execution x
LEFT JOIN finished f ON f.id = x.id AND f.final = 1
LEFT JOIN running u ON u.id = x.id
LEFT JOIN ready r ON r.id = x.id
LEFT JOIN scheduled s ON s.id = x.id
LEFT JOIN waiting w ON w.id = x.id;
