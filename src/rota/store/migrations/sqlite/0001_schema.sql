-- Times are whole microseconds since 1970 UTC. An execution is in exactly one of scheduled, waiting, ready, running,
-- or has one row in finished with final = 1: being in the table is being in the state.

CREATE TABLE namespace (
    name       TEXT PRIMARY KEY,
    max_depth  INTEGER,
    created_at INTEGER NOT NULL,
    -- How long ended executions are kept, in seconds. Null: as long as the setting says. 0: for ever.
    retention_s INTEGER
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
    job          TEXT NOT NULL,
    queue        TEXT NOT NULL,
    requirements TEXT NOT NULL DEFAULT '',
    UNIQUE (namespace, app, job, queue, requirements)
);

CREATE TABLE job (
    id          TEXT NOT NULL UNIQUE,
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

-- Claims read the paused jobs again and again.
CREATE INDEX job_paused ON job (name) WHERE paused_at IS NOT NULL;

-- A version is keyed by its content: registering known content adds nothing. Numbers count from 1 for each job.
CREATE TABLE job_version (
    namespace  TEXT NOT NULL,
    app        TEXT NOT NULL,
    job        TEXT NOT NULL,
    number     INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    definition TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, app, job, number),
    UNIQUE (namespace, app, job, digest)
) WITHOUT ROWID;

-- `deploy` is the number of the deploy whose schedules, queues and job versions are in force; null before the first
-- worker of the app has joined. The row is the lock for every change of these.
CREATE TABLE app (
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    deploy    INTEGER,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

-- One row for each set of declarations that workers of an app have had, keyed by its content. Of the deploys that live
-- workers declare, the one with the highest precedence is in force. `declared_at` is when a worker last started with it.
CREATE TABLE deploy (
    namespace   TEXT NOT NULL,
    app         TEXT NOT NULL,
    number      INTEGER NOT NULL,
    precedence  INTEGER NOT NULL,
    digest      TEXT NOT NULL,
    content     TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    declared_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, app, number),
    UNIQUE (namespace, app, digest)
) WITHOUT ROWID;

-- Written once; only a debounce changes it, because it moves the start deadline.
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
    -- A JSON object of texts by name.
    headers      TEXT,
    -- A JSON object: the timeout and the retry policy of this execution, in place of its job's.
    overrides    TEXT,
    limit_keys   TEXT,
    affinity_key TEXT,
    batch_key    TEXT,
    cache_key    TEXT,
    callback     TEXT,
    catch_up INTEGER
);
CREATE UNIQUE INDEX execution_id ON execution (id);
CREATE INDEX execution_job ON execution (namespace, job, id);

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

-- Executions behind at least one blocker. The rank is the one that they had, or will have, in ready.
CREATE TABLE waiting (
    id             TEXT PRIMARY KEY,
    lane           INTEGER NOT NULL,
    rank           INTEGER NOT NULL,
    since_at       INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    crashes        INTEGER NOT NULL,
    first_start_at INTEGER
) WITHOUT ROWID;

-- What a waiting execution waits for; domain/blocker.py lists the kinds.
CREATE TABLE blocker (
    execution TEXT NOT NULL,
    kind      TEXT NOT NULL,
    key       TEXT NOT NULL,
    rank      INTEGER NOT NULL,
    PRIMARY KEY (execution, kind, key)
) WITHOUT ROWID;
CREATE INDEX blocker_rank ON blocker (kind, key, rank, execution);

-- Blockers that have ended while executions are still behind them: upkeep releases these in batches.
CREATE TABLE lifted_blocker (
    kind        TEXT NOT NULL,
    key         TEXT NOT NULL,
    released_at INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;

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
    error       TEXT,
    -- JSON: processor seconds, peak memory, exit code, signal.
    usage TEXT
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
    failed_at INTEGER NOT NULL,
    -- Equal for errors of one cause (domain/fingerprint.py); null if there was no error.
    fingerprint TEXT
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
    jobs         TEXT NOT NULL,
    concurrency  INTEGER NOT NULL,
    state        TEXT NOT NULL,
    started_at   INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    lease_until  INTEGER NOT NULL,
    stopped_at   INTEGER,
    deploy       INTEGER,
    -- Which supervisor a worker process belongs to, and how few and how many of its kind that may have.
    supervisor TEXT NOT NULL DEFAULT '',
    least INTEGER NOT NULL DEFAULT 1,
    most INTEGER NOT NULL DEFAULT 1,
    -- Why a worker cannot start processes at present: a JSON object of reasons by what they are for; null if it can.
    trouble TEXT
);
CREATE INDEX worker_live ON worker (stopped_at) WHERE stopped_at IS NULL;
-- When the last worker of a deploy stopped.
CREATE INDEX worker_deploy ON worker (namespace, app, deploy, stopped_at);

CREATE TABLE audit (
    id        INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    before    TEXT,
    after     TEXT
);
CREATE INDEX audit_namespace ON audit (namespace, id);

-- What is left of executions that were pruned: one row for every job, queue, status and hour of their ends.
CREATE TABLE summary (
    namespace  TEXT NOT NULL,
    app        TEXT NOT NULL,
    job        TEXT NOT NULL,
    queue      TEXT NOT NULL,
    hour       INTEGER NOT NULL,
    status     TEXT NOT NULL,
    executions INTEGER NOT NULL,
    ran_us     INTEGER NOT NULL,
    longest_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, job, hour, app, queue, status)
) WITHOUT ROWID;

-- Work that one node does for all: who comes next sees when it was done, and goes on where the last one stopped.
CREATE TABLE chore (
    name     TEXT PRIMARY KEY,
    begun_at INTEGER NOT NULL,
    beat_at  INTEGER NOT NULL,
    done_at  INTEGER NOT NULL,
    full_at  INTEGER NOT NULL,
    removed  INTEGER NOT NULL,
    mark     TEXT NOT NULL
) WITHOUT ROWID;

-- Keys go after the history of their holders, oldest first.
CREATE INDEX unique_key_taken ON unique_key (taken_at, holder);

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

-- What an attempt tells while it runs: its log, how far it is, from where another can go on; and what it cost.

-- Pieces of the logs of all attempts: the lines from number `first` to number `last` of one attempt, as JSON.
CREATE TABLE log (
    id    TEXT NOT NULL,
    fence INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    first INTEGER NOT NULL,
    text  TEXT NOT NULL,
    PRIMARY KEY (id, fence, last)
) WITHOUT ROWID;

-- One row for every execution that has told something; the last word of its last attempt that did. The checkpoint is
-- JSON, and stays when another attempt begins.
CREATE TABLE note (
    id         TEXT NOT NULL PRIMARY KEY,
    fence      INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    done       REAL,
    total      REAL,
    note       TEXT,
    checkpoint TEXT,
    suspicion  INTEGER NOT NULL DEFAULT 0
);

-- How it stands with what jobs rely on. A breaker is open if opened_at is there; one may try at retry_at.
CREATE TABLE breaker (
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    failures    INTEGER NOT NULL DEFAULT 0,
    opened_at   INTEGER,
    retry_at    INTEGER,
    wait        INTEGER NOT NULL DEFAULT 0,
    probe_until INTEGER,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

-- Which worker last ran an execution with this value of an argument.
CREATE TABLE affinity (
    namespace TEXT NOT NULL,
    app       TEXT NOT NULL,
    key       TEXT NOT NULL,
    worker    INTEGER NOT NULL,
    used_at   INTEGER NOT NULL,
    PRIMARY KEY (namespace, app, key)
) WITHOUT ROWID;

-- Every execution and where it stands now.
CREATE VIEW state AS
SELECT x.id, x.namespace, x.app, x.job, x.job_version, x.queue, x.priority, x.actor, x.arguments, x.key, x.created_at,
       x.run_at, x.deadline, x.parent, x.replay_of, x.tags, x.schedule, x.tick, x.catch_up, x.headers, x.overrides,
       CASE WHEN f.id IS NOT NULL THEN f.status
            WHEN u.id IS NOT NULL THEN 'running'
            WHEN r.id IS NOT NULL THEN 'queued'
            WHEN s.id IS NOT NULL THEN CASE WHEN s.attempts > 0 THEN 'retrying' ELSE 'scheduled' END
            WHEN w.id IS NOT NULL THEN 'waiting' END AS status,
       coalesce(f.reason, u.cancel_reason, s.reason, CASE WHEN w.id IS NOT NULL THEN
           (SELECT min(b.kind) FROM blocker b WHERE b.execution = w.id) END, '') AS reason,
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
