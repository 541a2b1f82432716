-- Times are whole microseconds since 1970 UTC. An execution is in exactly one of scheduled, waiting, ready, running,
-- or has one row in finished with final = 1: being in the table is being in the state.

CREATE TABLE namespace (
    name       TEXT PRIMARY KEY,
    max_depth  INTEGER,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE queue (
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    policy      TEXT NOT NULL DEFAULT 'priority',
    max_depth   INTEGER,
    paused_at   INTEGER,
    paused_by   TEXT,
    paused_note TEXT,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

-- A lane is the interned (namespace, app, queue, requirements): what a claim scans.
CREATE TABLE lane (
    id           INTEGER PRIMARY KEY,
    namespace    TEXT NOT NULL,
    app          TEXT NOT NULL,
    queue        TEXT NOT NULL,
    requirements TEXT NOT NULL DEFAULT '',
    UNIQUE (namespace, app, queue, requirements)
);

CREATE TABLE job (
    namespace   TEXT NOT NULL,
    app         TEXT NOT NULL,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    requirements TEXT NOT NULL DEFAULT '',
    pause_after INTEGER,
    failures    INTEGER NOT NULL DEFAULT 0,
    paused_at   INTEGER,
    paused_by   TEXT,
    paused_note TEXT,
    PRIMARY KEY (namespace, app, name)
) WITHOUT ROWID;

-- A version is keyed by its content: registering known content adds nothing and moves nothing.
CREATE TABLE job_version (
    id         INTEGER PRIMARY KEY,
    namespace  TEXT NOT NULL,
    app        TEXT NOT NULL,
    job        TEXT NOT NULL,
    digest     TEXT NOT NULL,
    definition TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (namespace, app, job, digest)
);

-- Written once, never changed.
CREATE TABLE execution (
    id           TEXT NOT NULL,
    namespace    TEXT NOT NULL,
    app          TEXT NOT NULL,
    job          TEXT NOT NULL,
    job_version  INTEGER NOT NULL,
    actor        TEXT NOT NULL,
    queue        TEXT NOT NULL,
    lane         INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    arguments    TEXT NOT NULL,
    key          TEXT,
    created_at   INTEGER NOT NULL,
    run_at       INTEGER NOT NULL,
    deadline     INTEGER,
    schedule     TEXT,
    tick         INTEGER,
    run          TEXT,
    step         TEXT,
    map_index    INTEGER,
    parent       TEXT,
    replay_of    TEXT,
    tags         TEXT,
    trace        TEXT,
    limit_keys   TEXT,
    affinity_key TEXT,
    batch_key    TEXT,
    cache_key    TEXT,
    callback     TEXT
);
CREATE UNIQUE INDEX execution_id ON execution (id);
CREATE INDEX execution_job ON execution (job, id);

-- What moves carries fence, counted attempts, crashes and first start. scheduled with attempts > 0 is `retrying`.
CREATE TABLE scheduled (
    id             TEXT PRIMARY KEY,
    lane           INTEGER NOT NULL,
    priority       INTEGER NOT NULL,
    run_at         INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    crashes        INTEGER NOT NULL,
    first_start_at INTEGER,
    reason         TEXT
) WITHOUT ROWID;
CREATE INDEX scheduled_due ON scheduled (run_at, id);

CREATE TABLE waiting (
    id             TEXT PRIMARY KEY,
    lane           INTEGER NOT NULL,
    priority       INTEGER NOT NULL,
    waits_for      TEXT NOT NULL,
    since_at       INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    crashes        INTEGER NOT NULL,
    first_start_at INTEGER
) WITHOUT ROWID;
CREATE INDEX waiting_for ON waiting (waits_for);

CREATE TABLE ready (
    lane           INTEGER NOT NULL,
    rank           INTEGER NOT NULL,
    id             TEXT NOT NULL,
    fence          INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    crashes        INTEGER NOT NULL,
    first_start_at INTEGER,
    PRIMARY KEY (lane, rank, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ready_id ON ready (id);

CREATE TABLE running (
    id             TEXT PRIMARY KEY,
    lane           INTEGER NOT NULL,
    rank           INTEGER NOT NULL,
    worker         INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    crashes        INTEGER NOT NULL,
    first_start_at INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    cancel_at      INTEGER,
    cancel_reason  TEXT
) WITHOUT ROWID;

-- One row for every attempt; the one with final = 1 ends the execution.
CREATE TABLE finished (
    id          TEXT NOT NULL,
    fence       INTEGER NOT NULL,
    final       INTEGER NOT NULL,
    status      TEXT NOT NULL,
    reason      TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    crashes     INTEGER NOT NULL,
    worker      INTEGER,
    started_at  INTEGER,
    finished_at INTEGER NOT NULL,
    result      TEXT,
    error       TEXT
);
CREATE UNIQUE INDEX finished_id ON finished (id, fence);
CREATE INDEX finished_status ON finished (status, id) WHERE final = 1;

-- Failed executions that nobody has replayed or discarded yet.
CREATE TABLE dead (
    id        TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    app       TEXT NOT NULL,
    job       TEXT NOT NULL,
    queue     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    failed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX dead_job ON dead (namespace, job, id);

-- Idempotency and unique keys: (namespace, app, job, kind, key) -> the execution that holds it.
CREATE TABLE unique_key (
    namespace      TEXT NOT NULL,
    app            TEXT NOT NULL,
    job            TEXT NOT NULL,
    kind           TEXT NOT NULL,
    key            TEXT NOT NULL,
    holder         TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    taken_at       INTEGER NOT NULL,
    PRIMARY KEY (namespace, app, job, kind, key)
) WITHOUT ROWID;

-- Start deadlines still to come; a row is only a reminder, the truth is in the state tables.
CREATE TABLE expiry (
    deadline INTEGER NOT NULL,
    id       TEXT NOT NULL,
    PRIMARY KEY (deadline, id)
) WITHOUT ROWID;

-- One row for every incarnation of a worker process; the lease is here. Ids are never used again.
CREATE TABLE worker (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace    TEXT NOT NULL,
    app          TEXT NOT NULL,
    name         TEXT NOT NULL,
    host         TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    version      TEXT NOT NULL,
    offers       TEXT NOT NULL DEFAULT '{}',
    queues       TEXT NOT NULL,
    concurrency  INTEGER NOT NULL,
    state        TEXT NOT NULL,
    started_at   INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    lease_until  INTEGER NOT NULL,
    stopped_at   INTEGER
);
CREATE INDEX worker_live ON worker (stopped_at) WHERE stopped_at IS NULL;

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    before  TEXT,
    after   TEXT
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
