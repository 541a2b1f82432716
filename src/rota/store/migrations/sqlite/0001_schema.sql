-- Times are whole microseconds since 1970 UTC. The state of an execution is the table that has its row: scheduled,
-- waiting, ready, running, or finished (the row with final = 1). It is in exactly one of them.

CREATE TABLE namespace (
    name       TEXT PRIMARY KEY,
    max_depth  INTEGER,
    created_at INTEGER NOT NULL,
    -- How long ended executions are kept, in seconds. Null: as long as the setting says. 0: for ever.
    retention_s INTEGER,
    -- A JSON object (domain/quota.py); null without quotas.
    quotas     TEXT
) WITHOUT ROWID;

CREATE TABLE queue (
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    policy      TEXT NOT NULL DEFAULT 'priority',
    max_depth   INTEGER,
    paused_at   INTEGER,
    paused_by   TEXT,
    paused_note TEXT,
    -- Counts every change, pauses too. The HTTP API shows it as an ETag.
    revision INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

-- A lane is an integer for (namespace, app, job, queue, requirements). Claims scan `ready` lane by lane.
CREATE TABLE lane (
    id           INTEGER PRIMARY KEY,
    namespace    TEXT NOT NULL,
    app          TEXT NOT NULL,
    job          TEXT NOT NULL,
    queue        TEXT NOT NULL,
    requirements TEXT NOT NULL DEFAULT '',
    -- As in `job`.
    runs         TEXT,
    UNIQUE (namespace, app, job, queue, requirements)
);

-- `origin` is code, api or file. `revision` counts every change of the job, its pauses too. Versions up to `base` are of
-- deleted jobs that had the same name. `runs` is what a worker must have among its jobs to run this one: null for the
-- job itself, `*command` or `*http` for a job that is run from its definition, else the name of a function's job.
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
    origin      TEXT NOT NULL DEFAULT 'code',
    revision INTEGER NOT NULL DEFAULT 1,
    base INTEGER NOT NULL DEFAULT 0,
    runs        TEXT,
    created_at INTEGER,
    created_by  TEXT,
    updated_at INTEGER,
    PRIMARY KEY (namespace, app, name)
) WITHOUT ROWID;

-- Every claim reads the paused jobs.
CREATE INDEX job_paused ON job (name) WHERE paused_at IS NOT NULL;
CREATE INDEX job_name ON job (namespace, name, app);

-- A version is keyed by its content: registering known content adds nothing. Numbers count from 1 for each job.
CREATE TABLE job_version (
    namespace  TEXT NOT NULL,
    app        TEXT NOT NULL,
    job        TEXT NOT NULL,
    number     INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    definition TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- `source` is the definition as the API takes it, with its schedules, as JSON; null for versions of code.
    source     TEXT,
    created_by TEXT,
    -- A JSON object: the name and the version of the template that it was made of.
    template   TEXT,
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

-- Never updated, except that a debounce moves the start deadline, and that a tick which waits for other jobs notes
-- their executions.
CREATE TABLE execution (
    id           TEXT PRIMARY KEY,
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
    -- The run that this is a step of, the number of the step in its graph, and the item of a map.
    run          TEXT,
    step         INTEGER,
    map_index    INTEGER,
    -- A JSON object: the arguments that are results of other steps, resolved when the execution is claimed.
    inputs       TEXT,
    -- A JSON object: the ids of the executions that this one was started after, by job.
    upstream     TEXT,
    -- A JSON object: the event that started this execution (domain/event.py).
    event        TEXT,
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
) WITHOUT ROWID;
CREATE INDEX execution_job ON execution (namespace, job, id);
CREATE INDEX execution_parent ON execution (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX execution_replay ON execution (replay_of, id) WHERE replay_of IS NOT NULL;

-- Executions that are accepted but not placed yet: the next transaction moves them to execution and ready
-- (store/sqlite/arrivals.py).
CREATE TABLE arrival (
    id          TEXT PRIMARY KEY,
    lane        INTEGER NOT NULL,
    rank        INTEGER NOT NULL,
    job_version INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    priority    INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    arguments   TEXT NOT NULL,
    parent      TEXT,
    replay_of   TEXT,
    trace       TEXT,
    headers     TEXT,
    overrides   TEXT,
    upstream    TEXT
) WITHOUT ROWID;

-- A row keeps its fence, counted attempts, crashes, first start and run when it moves. scheduled with attempts > 0
-- is `retrying`.
CREATE TABLE scheduled (
    id             TEXT PRIMARY KEY,
    lane           INTEGER NOT NULL,
    priority       INTEGER NOT NULL,
    run_at         INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    crashes        INTEGER NOT NULL,
    first_start_at INTEGER,
    run            TEXT,
    reason         TEXT
) WITHOUT ROWID;
CREATE INDEX scheduled_due ON scheduled (run_at, id);
-- Executions that have begun and are to run again.
CREATE INDEX scheduled_again ON scheduled (lane) WHERE reason IS NOT NULL;

-- Executions with at least one blocker. The rank is the one that they had, or will have, in ready.
CREATE TABLE waiting (
    id             TEXT PRIMARY KEY,
    lane           INTEGER NOT NULL,
    rank           INTEGER NOT NULL,
    since_at       INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    crashes        INTEGER NOT NULL,
    first_start_at INTEGER,
    run            TEXT
) WITHOUT ROWID;
CREATE INDEX waiting_lane ON waiting (lane);

-- The reasons why an execution waits; domain/blocker.py lists the kinds.
CREATE TABLE blocker (
    execution TEXT NOT NULL,
    kind      TEXT NOT NULL,
    key       TEXT NOT NULL,
    rank      INTEGER NOT NULL,
    PRIMARY KEY (execution, kind, key)
) WITHOUT ROWID;
CREATE INDEX blocker_rank ON blocker (kind, key, rank, execution);

-- Blockers that have ended and still have waiting executions, which upkeep releases in batches.
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
    run            TEXT,
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
    run            TEXT,
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
    usage TEXT,
    -- In a final row: the last replay of this execution.
    replayed_as TEXT,
    PRIMARY KEY (id, fence)
) WITHOUT ROWID;
CREATE INDEX finished_status ON finished (status, id) WHERE final = 1;

-- Failed executions that were not replayed or discarded yet.
CREATE TABLE dead (
    id        TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    app       TEXT NOT NULL,
    job       TEXT NOT NULL,
    queue     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    failed_at INTEGER NOT NULL,
    -- Equal for errors of one cause (domain/error_fingerprint.py); null if there was no error.
    fingerprint TEXT
) WITHOUT ROWID;
CREATE INDEX dead_job ON dead (namespace, job, id);
CREATE INDEX dead_namespace ON dead (namespace, id);
CREATE INDEX dead_fingerprint ON dead (namespace, fingerprint, id) WHERE fingerprint IS NOT NULL;

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

-- Start deadlines, timeouts of runs, and the ends of waits. A row is only a reminder: upkeep checks the execution itself
-- when the deadline has passed.
CREATE TABLE expiry (
    deadline INTEGER NOT NULL,
    id       TEXT NOT NULL,
    PRIMARY KEY (deadline, id)
) WITHOUT ROWID;

-- One row for every incarnation of a worker process, with its lease. Ids are never reused.
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
    -- The supervisor of a worker process, and how many processes of this kind it runs at least and at most.
    supervisor TEXT NOT NULL DEFAULT '',
    least INTEGER NOT NULL DEFAULT 1,
    most INTEGER NOT NULL DEFAULT 1,
    -- Why a worker cannot start processes: a JSON object of reasons by purpose; null if it can.
    trouble TEXT,
    -- A digit for each of the last 40 heartbeats: by how many periods it came late.
    beats TEXT NOT NULL DEFAULT '',
    -- The bytes of memory that the process had in use at the last heartbeat; null if that is not known.
    memory INTEGER,
    -- What became of the executions that it held when it stopped: a JSON object.
    ended TEXT,
    -- A worker without an app may serve several namespaces: a JSON array of the others; `namespace` is the first one.
    others TEXT NOT NULL DEFAULT '[]'
);
CREATE INDEX worker_live ON worker (stopped_at) WHERE stopped_at IS NULL;
-- Finds when the last worker of a deploy stopped.
CREATE INDEX worker_deploy ON worker (namespace, app, deploy, stopped_at);

CREATE TABLE audit (
    id        INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    before    TEXT,
    after     TEXT,
    -- From where a change came: the address of the client and the id of its request.
    address   TEXT,
    request   TEXT
);
CREATE INDEX audit_namespace ON audit (namespace, id);

-- The passes that delete old history: when the last one ended, and where one that was interrupted can resume.
CREATE TABLE retention_pass (
    name     TEXT PRIMARY KEY,
    begun_at INTEGER NOT NULL,
    beat_at  INTEGER NOT NULL,
    done_at  INTEGER NOT NULL,
    full_at  INTEGER NOT NULL,
    removed  INTEGER NOT NULL,
    mark     TEXT NOT NULL
) WITHOUT ROWID;

-- Keys are deleted after the history of their holders, oldest first.
CREATE INDEX unique_key_taken ON unique_key (taken_at, holder);

-- Schedules, their ledger of ticks, and calendars.

-- The definition of a schedule. A removed schedule is kept as long as its ledger.
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
CREATE UNIQUE INDEX schedule_name ON schedule (namespace, name, app) WHERE removed_at IS NULL;
-- Unlike schedule_name with removed schedules: all schedules that ever had one name share one ledger of ticks.
CREATE INDEX schedule_ever ON schedule (name, app, namespace);
CREATE INDEX schedule_job ON schedule (job, namespace) WHERE removed_at IS NULL;
CREATE INDEX schedule_code ON schedule (namespace, app, name) WHERE origin = 'code' AND removed_at IS NULL;

-- The position of a schedule: the columns that change with every tick. All ticks up to `cursor` have been decided.
-- `next_at` is the time of the next check; null if the schedule is paused, over, or waits for the end of `waits_for`:
-- then it is set to that end plus `delay`. A row whose revision differs from that of its schedule is outdated.
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

-- One row for each tick, or for a range of `count` ticks with the same outcome. The ledger is kept for longer than the
-- history: before an execution is deleted, its final status is copied to `ended`.
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
-- The ledger is read between two instants: a range that began earlier is found by its end.
CREATE INDEX tick_ranges ON tick (schedule, until) WHERE until > at;
-- Finds the ticks that lately started nothing.
CREATE INDEX tick_left_out ON tick (decided_at) WHERE execution IS NULL;

CREATE TABLE calendar (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    days       TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    -- As in `queue`.
    revision INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

-- Pieces of the logs of all attempts: the lines from number `first` to number `last` of one attempt, as JSON.
CREATE TABLE log (
    id    TEXT NOT NULL,
    fence INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    first INTEGER NOT NULL,
    text  TEXT NOT NULL,
    PRIMARY KEY (id, fence, last)
) WITHOUT ROWID;

-- The progress that the last attempt of an execution has reported, and its checkpoint. The checkpoint is JSON, and is
-- kept when another attempt begins.
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

-- Circuit breakers. A breaker with opened_at is open; from retry_at on, one probe may start.
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

-- Workflows. A run is an execution of a workflow: while it is open it has a row in `run`, and its execution waits behind a
-- blocker of kind `run`. `letters` has one letter per step of the graph (domain/workflow/letters.py). The row is the lock
-- for every decision about the run, and is locked after all other rows.
CREATE TABLE run (
    id           TEXT PRIMARY KEY,
    root         TEXT NOT NULL,
    parent       TEXT,
    parent_step  INTEGER,
    parent_item  INTEGER,
    depth        INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    opened_at    INTEGER NOT NULL,
    -- When the sweeper looks at the run next (domain/workflow/next_look.py).
    look_at      INTEGER NOT NULL,
    deadline     INTEGER,
    paused_at    INTEGER,
    namespace    TEXT NOT NULL,
    app          TEXT NOT NULL,
    job          TEXT NOT NULL,
    -- The digest of the pinned version, and what was pinned of each job at the opening, as a JSON object.
    graph        TEXT NOT NULL,
    pinned       TEXT NOT NULL,
    letters      TEXT NOT NULL,
    -- Null, or why the run is stopping: no step starts any more except those with the rule `always`.
    stopping     TEXT,
    -- Set from the moment at which the run stops until `tell_steps` has cancelled its open steps.
    told         INTEGER,
    -- The run that this one retries: it may refer to results of earlier runs.
    retry_of     TEXT,
    -- `undo`: the run that undoes this one, set when the run is undoing. `undo_of`: the run that this one undoes.
    undo         TEXT,
    undo_of      TEXT,
    paused_by    TEXT,
    paused_note  TEXT
) WITHOUT ROWID;
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_told ON run (id) WHERE told IS NOT NULL;
CREATE INDEX run_paused ON run (id) WHERE paused_at IS NOT NULL;
CREATE INDEX run_look ON run (look_at);
CREATE INDEX run_retry ON run (id) WHERE retry_of IS NOT NULL;

-- Runs that have ended: what is needed to show them and to retry them.
CREATE TABLE run_ended (
    id           TEXT NOT NULL,
    root         TEXT NOT NULL,
    parent       TEXT,
    parent_step  INTEGER,
    parent_item  INTEGER,
    depth        INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    opened_at    INTEGER NOT NULL,
    pinned       TEXT NOT NULL,
    letters      TEXT NOT NULL,
    stopping     TEXT,
    undo         TEXT,
    undo_of      TEXT,
    -- 1 if this is a sub-run with steps that an undo of the run above would undo.
    undoable     INTEGER NOT NULL
);
CREATE UNIQUE INDEX run_ended_id ON run_ended (id);

-- Which execution is which step of a run. The item of a step that is no map is 0. A step that was kept by a retry has
-- the execution of the earlier run.
CREATE TABLE step (
    run       TEXT NOT NULL,
    number    INTEGER NOT NULL,
    item      INTEGER NOT NULL,
    execution TEXT NOT NULL,
    PRIMARY KEY (run, number, item)
) WITHOUT ROWID;

-- Maps that still have items to insert, or whose items have to be told to stop. `next_item` is the first item without an
-- execution, `told_item` the first one that was not told, and `first_id` is the first execution of the last chunk.
-- The expander looks at the map from `look_at` on.
CREATE TABLE map_open (
    run         TEXT NOT NULL,
    number      INTEGER NOT NULL,
    width       INTEGER NOT NULL,
    next_item   INTEGER NOT NULL,
    told_item   INTEGER NOT NULL DEFAULT 0,
    look_at     INTEGER NOT NULL,
    first_id    TEXT,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;

-- The items of a map by outcome, in shards: finishes of different items change different rows.
CREATE TABLE map_tally (
    run       TEXT NOT NULL,
    number    INTEGER NOT NULL,
    shard     INTEGER NOT NULL,
    open      INTEGER NOT NULL,
    success   INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    skipped   INTEGER NOT NULL,
    PRIMARY KEY (run, number, shard)
) WITHOUT ROWID;

-- Which jobs start after which. `met` is the execution of the upstream whose end counts for the next round; null until
-- there is one. The rows of a job are the lock for its rounds.
CREATE TABLE dependency (
    namespace    TEXT NOT NULL,
    app          TEXT NOT NULL,
    job          TEXT NOT NULL,
    upstream_app TEXT NOT NULL,
    upstream     TEXT NOT NULL,
    outcome      TEXT NOT NULL,
    met          TEXT,
    PRIMARY KEY (namespace, app, job, upstream_app, upstream)
) WITHOUT ROWID;
CREATE INDEX dependency_upstream ON dependency (namespace, upstream_app, upstream);

-- Events. A row is written once.
CREATE TABLE event (
    id         TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    -- Empty if the event has none.
    subject    TEXT NOT NULL,
    key        TEXT,
    actor      TEXT NOT NULL,
    payload    TEXT NOT NULL,
    emitted_at INTEGER NOT NULL,
    -- The event that this one repeats.
    replay_of  TEXT
);
CREATE UNIQUE INDEX event_id ON event (id);
CREATE INDEX event_name ON event (namespace, name, emitted_at);
CREATE INDEX event_subject ON event (namespace, name, subject, emitted_at) WHERE subject <> '';
CREATE INDEX event_namespace ON event (namespace, id);

-- Events that upkeep has not yet checked against all subscriptions. The subscribers up to `after`, in their order, are
-- done. A replay also delivers the event to jobs that were declared after it was emitted.
CREATE TABLE event_open (
    event     TEXT PRIMARY KEY,
    after     TEXT NOT NULL,
    is_replay INTEGER NOT NULL
) WITHOUT ROWID;

-- Which subscriber gets the events of a name. A subscriber is a job (its app and name), or a step of a run that waits:
-- then `execution` is that step, and the row is deleted when the step ends. An empty subject matches every event.
CREATE TABLE subscription (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    subscriber TEXT NOT NULL,
    since_at   INTEGER NOT NULL,
    app        TEXT,
    job        TEXT,
    execution  TEXT,
    -- Both are JSON. `filter`: which payloads match (domain/event_filter.py). `target`: for a job, what a delivery needs
    -- from its definition; for a step, the ids of events that it does not take.
    filter     TEXT,
    target     TEXT,
    -- Never set on SQLite, which has one writer: see the schema for PostgreSQL.
    unsure     INTEGER,
    PRIMARY KEY (namespace, name, subject, subscriber)
) WITHOUT ROWID;
CREATE INDEX subscription_job ON subscription (namespace, app) WHERE app IS NOT NULL;
CREATE INDEX subscription_execution ON subscription (execution) WHERE execution IS NOT NULL;
CREATE INDEX subscription_unsure ON subscription (subscriber) WHERE unsure IS NOT NULL;

-- Which subscriber has received which event, and the execution that the event started or woke.
CREATE TABLE delivery (
    event      TEXT NOT NULL,
    subscriber TEXT NOT NULL,
    execution  TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (event, subscriber)
) WITHOUT ROWID;

-- Tokens of the HTTP API. The text of a token is known only to its holder: `digest` is its SHA-256, `ending` its last
-- four characters. A revoked token stays, so that its name is known in the audit trail. Lists are JSON. After a
-- rotation the old secret is valid until `old_until`.
CREATE TABLE token (
    id           TEXT PRIMARY KEY,
    namespace    TEXT NOT NULL,
    name         TEXT NOT NULL,
    role         TEXT,
    scopes       TEXT NOT NULL,
    namespaces   TEXT NOT NULL,
    groups       TEXT NOT NULL DEFAULT '[]',
    only_queues  TEXT,
    only_jobs    TEXT,
    digest       TEXT NOT NULL UNIQUE,
    ending       TEXT NOT NULL,
    old_digest   TEXT UNIQUE,
    old_until    INTEGER,
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    revoked_by   TEXT
);
CREATE INDEX token_namespace ON token (namespace, id);
CREATE UNIQUE INDEX token_name ON token (namespace, name) WHERE revoked_at IS NULL;

-- A browser's sign-in; it ends with its token.
CREATE TABLE session (
    digest     TEXT PRIMARY KEY,
    token      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
);
CREATE INDEX session_token ON session (token);
CREATE INDEX session_used ON session (used_at);

-- A request that succeeded, by its Idempotency-Key; written in the transaction of its effect. `route` is method and
-- path, `digest` the SHA-256 of query and body, `answer` the body of the answer.
CREATE TABLE request_key (
    namespace  TEXT NOT NULL,
    actor      TEXT NOT NULL,
    route      TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     TEXT NOT NULL,
    status     INTEGER NOT NULL,
    headers    TEXT NOT NULL,
    answer     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, actor, route, key)
);
CREATE INDEX request_key_created ON request_key (created_at);

-- A job that was deleted: its name may be used again, its history is found by its id. Its versions are those from
-- `base` + 1 to `last`.
CREATE TABLE deleted_job (
    id          TEXT PRIMARY KEY,
    namespace   TEXT NOT NULL,
    app         TEXT NOT NULL,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    base        INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    origin      TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    created_at  INTEGER,
    created_by  TEXT,
    deleted_at  INTEGER NOT NULL,
    deleted_by  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX deleted_job_name ON deleted_job (namespace, name, app, id);

-- A definition with parameters, of which jobs are made. `version` counts its changes.
CREATE TABLE template (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    content    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

-- One row for each tag of an execution.
CREATE TABLE tag (
    namespace TEXT NOT NULL,
    tag       TEXT NOT NULL,
    id        TEXT NOT NULL,
    PRIMARY KEY (namespace, tag, id)
) WITHOUT ROWID;
-- Finds the rows of an execution that is deleted.
CREATE INDEX tag_id ON tag (id);

-- The processes of the HTTP API that are alive. A rate is shared among them by equal parts.
CREATE TABLE server_node (
    id      TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Executions with a callback that have not ended.
CREATE TABLE callback_open (
    execution TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Inbound webhooks. A row is an address that other systems post to: each accepted request becomes an event. `key` is
-- the random part of the address. A signature can only be checked with the secret itself; that of the scheme `bearer`
-- is stored as its SHA-256. After a rotation the old secret is valid until `old_until`. `revision` counts every change.
CREATE TABLE hook (
    id               TEXT PRIMARY KEY,
    namespace        TEXT NOT NULL,
    name             TEXT NOT NULL,
    key              TEXT NOT NULL UNIQUE,
    event            TEXT NOT NULL,
    scheme           TEXT NOT NULL,
    -- Where the id of a request is found by which a repeated one is recognised: a header or a JSON pointer.
    dedupe_header    TEXT,
    dedupe_pointer   TEXT,
    -- Of the scheme `hmac`.
    signature_header TEXT,
    timestamp_header TEXT,
    description      TEXT NOT NULL,
    secret           TEXT NOT NULL,
    old_secret       TEXT,
    old_until        INTEGER,
    revision         INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    created_by       TEXT NOT NULL,
    updated_at       INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX hook_name ON hook (namespace, name);

-- Statistics. They are counted in the transactions that create and end executions, so they do not depend on how long the
-- history is kept.

-- What one transaction has created or ended: one row for each lane and outcome. Rows are only appended, so no two
-- transactions wait for each other. `outcome` is a final status, `created` or `retries`. The times are JSON: a histogram
-- as in `stat`, or an array of microseconds. Upkeep adds the rows to `stat` and deletes them (ops/statistics.py).
CREATE TABLE stat_delta (
    id              INTEGER PRIMARY KEY,
    at              INTEGER NOT NULL,
    lane            INTEGER NOT NULL,
    count           INTEGER NOT NULL,
    outcome         TEXT NOT NULL,
    run_times       TEXT,
    start_latencies TEXT,
    latenesses      TEXT
);

-- One row for each lane and minute and for each lane and five minutes (kept for 48 hours), and for each lane and hour
-- (kept for 400 days). The times are histograms: JSON objects of counts by bucket (domain/statistics.py).
-- The columns of the key come first: with another order, the integrity check of SQLite 3.40 reports nulls that are not
-- there.
CREATE TABLE stat (
    namespace       TEXT NOT NULL,
    step_s          INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    lane            INTEGER NOT NULL,
    created         INTEGER NOT NULL,
    success         INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    cancelled       INTEGER NOT NULL,
    skipped         INTEGER NOT NULL,
    retries         INTEGER NOT NULL,
    run_times       TEXT NOT NULL,
    start_latencies TEXT NOT NULL,
    latenesses      TEXT NOT NULL,
    PRIMARY KEY (namespace, step_s, at, lane)
) WITHOUT ROWID;
CREATE INDEX stat_old ON stat (step_s, at);

-- Samples of each namespace, taken once a minute: of each queue (`pool` is empty), of each pool (`queue` is empty), and
-- of all together (both are empty). The row of an hour has the highest value of each column.
CREATE TABLE stat_sample (
    namespace  TEXT NOT NULL,
    step_s     INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    queue      TEXT NOT NULL,
    pool       TEXT NOT NULL,
    queued     INTEGER NOT NULL,
    -- Microseconds.
    oldest_age INTEGER NOT NULL,
    busy       INTEGER NOT NULL,
    slots      INTEGER NOT NULL,
    PRIMARY KEY (namespace, step_s, at, queue, pool)
) WITHOUT ROWID;
CREATE INDEX stat_sample_old ON stat_sample (step_s, at);

-- The locks for these chores: one supervisor at a time does each of them.
CREATE TABLE stat_chore (
    name    TEXT PRIMARY KEY,
    next_at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO stat_chore (name, next_at) VALUES ('fold', 0), ('sample', 0);

-- Actions on many executions, runs, events, schedules or jobs at once. `filter` and `options` are JSON, `errors` a JSON
-- list. The ids are collected first, up to `mark`, then acted on in the order of their positions: the first `done` +
-- `failed` of them have been. `next_at` is when an open action is looked at next; null if it has ended.
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

-- Every execution and its state.
CREATE VIEW state AS
SELECT x.id, x.namespace, x.app, x.job, x.job_version, x.queue, x.priority, x.actor, x.arguments, x.key, x.created_at,
       x.run_at, x.deadline, x.parent, x.replay_of, x.tags, x.schedule, x.tick, x.catch_up, x.headers, x.overrides,
       x.run, x.step, x.map_index, x.inputs, x.upstream, x.event,
       CASE WHEN f.id IS NOT NULL THEN f.status
            WHEN u.id IS NOT NULL THEN 'running'
            WHEN r.id IS NOT NULL THEN 'queued'
            WHEN s.id IS NOT NULL THEN CASE WHEN s.attempts > 0 THEN 'retrying' ELSE 'scheduled' END
            WHEN n.id IS NOT NULL THEN 'running'
            WHEN w.id IS NOT NULL THEN 'waiting' END AS status,
       coalesce(f.reason, u.cancel_reason, s.reason, n.stopping, CASE WHEN w.id IS NOT NULL THEN
           (SELECT min(b.kind) FROM blocker b WHERE b.execution = w.id) END, '') AS reason,
       coalesce(f.fence, u.fence, r.fence, s.fence, w.fence) AS fence,
       coalesce(f.attempts, u.attempts, r.attempts, s.attempts, w.attempts) AS attempts,
       coalesce(f.crashes, u.crashes, r.crashes, s.crashes, w.crashes) AS crashes,
       s.run_at AS due_at,
       coalesce(f.started_at, u.started_at, n.opened_at) AS started_at,
       f.finished_at,
       u.cancel_at,
       coalesce(f.worker, u.worker) AS worker
FROM execution x
LEFT JOIN finished f ON f.id = x.id AND f.final = 1
LEFT JOIN running u ON u.id = x.id
LEFT JOIN ready r ON r.id = x.id
LEFT JOIN scheduled s ON s.id = x.id
LEFT JOIN waiting w ON w.id = x.id
LEFT JOIN run n ON n.id = x.id;

-- What `execution` and `ready` would have if all arrivals were placed. Queries use these views under the names of the
-- tables while the arrivals cannot be placed (store/sqlite/readers.py).
CREATE VIEW all_execution AS
SELECT * FROM execution
UNION ALL
SELECT a.id, l.namespace, l.app, l.job, a.job_version, a.actor, l.queue, a.lane, a.priority, a.arguments, NULL,
       a.created_at, a.created_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, a.upstream, NULL, a.parent, a.replay_of,
       NULL, a.trace, a.headers, a.overrides, NULL, NULL, NULL, NULL, NULL, NULL
FROM arrival a CROSS JOIN lane l ON l.id = a.lane;

CREATE VIEW all_ready AS
SELECT * FROM ready UNION ALL SELECT lane, rank, id, 0, 0, 0, NULL, NULL FROM arrival;
