-- Times are whole microseconds since 1970 UTC. The state of an execution is the table that has its row: scheduled,
-- waiting, ready, running, or finished (the row with final = 1). It is in exactly one of them.
--
-- Runs with search_path set to Rota's schema alone, so every name below is in it.

CREATE TABLE namespace (
    name       text PRIMARY KEY,
    max_depth  bigint,
    created_at bigint NOT NULL,
    -- How long ended executions are kept, in seconds. Null: as long as the setting says. 0: for ever.
    retention_s bigint,
    -- A JSON object (domain/quota.py); null without quotas.
    quotas     text
);

CREATE TABLE queue (
    namespace   text NOT NULL,
    name        text NOT NULL,
    policy      text NOT NULL DEFAULT 'priority',
    max_depth   bigint,
    paused_at   bigint,
    paused_by   text,
    paused_note text,
    -- Counts every change, pauses too. The HTTP API shows it as an ETag.
    revision    bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (namespace, name)
);

-- A lane is an integer for (namespace, app, job, queue, requirements). Claims scan `ready` lane by lane.
CREATE TABLE lane (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace    text NOT NULL,
    app          text NOT NULL,
    job          text NOT NULL,
    queue        text NOT NULL,
    requirements text NOT NULL DEFAULT '',
    -- As in `job`.
    runs         text,
    UNIQUE (namespace, app, job, queue, requirements)
);

-- `origin` is code, api or file. `revision` counts every change of the job, its pauses too. Versions up to `base` are of
-- deleted jobs that had the same name. `runs` is what a worker must have among its jobs to run this one: null for the
-- job itself, `*command` or `*http` for a job that is run from its definition, else the name of a function's job.
CREATE TABLE job (
    id          uuid NOT NULL UNIQUE,
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
    origin      text NOT NULL DEFAULT 'code',
    revision    bigint NOT NULL DEFAULT 1,
    base        bigint NOT NULL DEFAULT 0,
    runs        text,
    created_at  bigint,
    created_by  text,
    updated_at  bigint,
    PRIMARY KEY (namespace, app, name)
);

-- Every claim reads the paused jobs.
CREATE INDEX job_paused ON job (name) WHERE paused_at IS NOT NULL;
CREATE INDEX job_name ON job (namespace, name, app);

-- A version is keyed by its content: registering known content adds nothing. Numbers count from 1 for each job.
CREATE TABLE job_version (
    namespace  text NOT NULL,
    app        text NOT NULL,
    job        text NOT NULL,
    number     bigint NOT NULL,
    digest     text NOT NULL,
    definition text NOT NULL,
    created_at bigint NOT NULL,
    -- `source` is the definition as the API takes it, with its schedules, as JSON; null for versions of code.
    source     text,
    created_by text,
    -- A JSON object: the name and the version of the template that it was made of.
    template   text,
    PRIMARY KEY (namespace, app, job, number),
    UNIQUE (namespace, app, job, digest)
);

-- `deploy` is the number of the deploy whose schedules, queues and job versions are in force; null before the first
-- worker of the app has joined. The row is the lock for every change of these.
CREATE TABLE app (
    namespace text NOT NULL,
    name      text NOT NULL,
    deploy    bigint,
    PRIMARY KEY (namespace, name)
);

-- One row for each set of declarations that workers of an app have had, keyed by its content. Of the deploys that live
-- workers declare, the one with the highest precedence is in force. `declared_at` is when a worker last started with it.
CREATE TABLE deploy (
    namespace   text NOT NULL,
    app         text NOT NULL,
    number      bigint NOT NULL,
    precedence  bigint NOT NULL,
    digest      text NOT NULL,
    content     text NOT NULL,
    created_at  bigint NOT NULL,
    declared_at bigint NOT NULL,
    PRIMARY KEY (namespace, app, number),
    UNIQUE (namespace, app, digest)
);

-- Never updated, except that a debounce moves the start deadline, and that a tick which waits for other jobs notes
-- their executions. Partitioned by the time in the id, so
-- that history is dropped by the day and not deleted row by row. The default partition has the rows of days without a
-- partition, and the rows that outlive their day.
CREATE TABLE execution (
    id           uuid NOT NULL,
    created_at   bigint NOT NULL,
    run_at       bigint NOT NULL,
    deadline     bigint,
    job_version  bigint NOT NULL,
    tick         bigint,
    -- The run that this is a step of, the number of the step in its graph, and the item of a map.
    run          uuid,
    parent       uuid,
    replay_of    uuid,
    lane         integer NOT NULL,
    priority     integer NOT NULL,
    step         integer,
    map_index    integer,
    namespace    text NOT NULL,
    app          text NOT NULL,
    job          text NOT NULL,
    actor        text NOT NULL,
    queue        text NOT NULL,
    arguments    text NOT NULL,
    key          text,
    schedule     text,
    -- A JSON object: the arguments that are results of other steps, resolved when the execution is claimed.
    inputs       text,
    -- A JSON object: the ids of the executions that this one was started after, by job.
    upstream     text,
    -- A JSON object: the event that started this execution (domain/event.py).
    event        text,
    tags         text,
    trace        text,
    -- A JSON object of texts by name.
    headers      text,
    -- A JSON object: the timeout and the retry policy of this execution, in place of its job's.
    overrides    text,
    limit_keys   text,
    affinity_key text,
    batch_key    text,
    cache_key    text,
    callback     text,
    catch_up smallint
) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX execution_id ON execution (id);
CREATE INDEX execution_job ON execution (namespace, job, id);
CREATE INDEX execution_parent ON execution (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX execution_replay ON execution (replay_of, id) WHERE replay_of IS NOT NULL;
CREATE TABLE execution_default PARTITION OF execution DEFAULT;

-- The tables below stay small and change often. They are vacuumed early and without pauses.

-- A row keeps its fence, counted attempts, crashes, first start and run when it moves. scheduled with attempts > 0
-- is `retrying`.
CREATE TABLE scheduled (
    id             uuid PRIMARY KEY,
    run            uuid,
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
-- Executions that have begun and are to run again.
CREATE INDEX scheduled_again ON scheduled (lane) WHERE reason IS NOT NULL;

-- Executions with at least one blocker. The rank is the one that they had, or will have, in ready.
CREATE TABLE waiting (
    id             uuid PRIMARY KEY,
    rank           bigint NOT NULL,
    run            uuid,
    since_at       bigint NOT NULL,
    first_start_at bigint,
    lane           integer NOT NULL,
    fence          integer NOT NULL,
    attempts       integer NOT NULL,
    crashes        integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX waiting_lane ON waiting (lane);

-- The reasons why an execution waits; domain/blocker.py lists the kinds. The waiting row is the lock for its blockers.
CREATE TABLE blocker (
    execution uuid NOT NULL,
    rank      bigint NOT NULL,
    kind      text NOT NULL,
    key       text NOT NULL,
    PRIMARY KEY (execution, kind, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX blocker_rank ON blocker (kind, key, rank, execution);

-- Blockers that have ended and still have waiting executions, which upkeep releases in batches.
CREATE TABLE lifted_blocker (
    released_at bigint NOT NULL,
    kind        text NOT NULL,
    key         text NOT NULL,
    PRIMARY KEY (kind, key)
);

CREATE TABLE ready (
    id             uuid NOT NULL,
    run            uuid,
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
    run            uuid,
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
    error       text,
    -- JSON: processor seconds, peak memory, exit code, signal.
    usage text,
    -- In a final row: the last replay of this execution.
    replayed_as uuid
) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX finished_id ON finished (id, fence);
-- Excludes successes: nearly all executions succeed, so a query for successes scans by id instead.
CREATE INDEX finished_status ON finished (status, id) WHERE final = 1 AND status <> 'success';
CREATE TABLE finished_default PARTITION OF finished DEFAULT;

-- Failed executions that were not replayed or discarded yet.
CREATE TABLE dead (
    id        uuid PRIMARY KEY,
    failed_at bigint NOT NULL,
    namespace text NOT NULL,
    app       text NOT NULL,
    job       text NOT NULL,
    queue     text NOT NULL,
    reason    text NOT NULL,
    -- Equal for errors of one cause (domain/error_fingerprint.py); null if there was no error.
    fingerprint text
);
CREATE INDEX dead_job ON dead (namespace, job, id);
CREATE INDEX dead_namespace ON dead (namespace, id);
CREATE INDEX dead_fingerprint ON dead (namespace, fingerprint, id) WHERE fingerprint IS NOT NULL;

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

-- Start deadlines, timeouts of runs, and the ends of waits. A row is only a reminder: upkeep checks the execution itself
-- when the deadline has passed.
CREATE TABLE expiry (
    deadline bigint NOT NULL,
    id       uuid NOT NULL,
    PRIMARY KEY (deadline, id)
);

-- One row for every incarnation of a worker process, with its lease. Ids are never reused.
CREATE TABLE worker (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pid          bigint NOT NULL,
    concurrency  bigint NOT NULL,
    started_at   bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    lease_until  bigint NOT NULL,
    stopped_at   bigint,
    deploy       bigint,
    namespace    text NOT NULL,
    app          text NOT NULL,
    name         text NOT NULL,
    host         text NOT NULL,
    version      text NOT NULL,
    offers       text NOT NULL DEFAULT '{}',
    queues       text NOT NULL,
    jobs         text NOT NULL,
    state        text NOT NULL,
    -- The supervisor of a worker process, and how many processes of this kind it runs at least and at most.
    supervisor text NOT NULL DEFAULT '',
    least bigint NOT NULL DEFAULT 1,
    most bigint NOT NULL DEFAULT 1,
    -- Why a worker cannot start processes: a JSON object of reasons by purpose; null if it can.
    trouble text,
    -- A digit for each of the last 40 heartbeats: by how many periods it came late.
    beats text NOT NULL DEFAULT '',
    -- The bytes of memory that the process had in use at the last heartbeat; null if that is not known.
    memory bigint,
    -- What became of the executions that it held when it stopped: a JSON object.
    ended text,
    -- A worker without an app may serve several namespaces: a JSON array of the others; `namespace` is the first one.
    others text NOT NULL DEFAULT '[]'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX worker_live ON worker (id) WHERE stopped_at IS NULL;
-- Finds when the last worker of a deploy stopped.
CREATE INDEX worker_deploy ON worker (namespace, app, deploy, stopped_at);

CREATE TABLE audit (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        bigint NOT NULL,
    namespace text NOT NULL,
    actor     text NOT NULL,
    action    text NOT NULL,
    subject   text NOT NULL,
    before    text,
    after     text,
    -- From where a change came: the address of the client and the id of its request.
    address   text,
    request   text
);
CREATE INDEX audit_namespace ON audit (namespace, id);

-- The passes that delete old history: when the last one ended, and where one that was interrupted can resume.
CREATE TABLE retention_pass (
    name     text PRIMARY KEY,
    begun_at bigint NOT NULL,
    beat_at  bigint NOT NULL,
    done_at  bigint NOT NULL,
    full_at  bigint NOT NULL,
    removed  bigint NOT NULL,
    mark     text NOT NULL
) WITH (fillfactor = 50);

-- Keys are deleted after the history of their holders, oldest first.
CREATE INDEX unique_key_taken ON unique_key (taken_at, holder);

-- Schedules, their ledger of ticks, and calendars.

-- The definition of a schedule. A removed schedule is kept as long as its ledger.
CREATE TABLE schedule (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    revision       bigint NOT NULL DEFAULT 1,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    paused_at      bigint,
    removed_at     bigint,
    namespace      text NOT NULL,
    -- Lists are in the order of names, which must not depend on the locale.
    app            text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL,
    job            text NOT NULL,
    origin         text NOT NULL,
    spec           text NOT NULL,
    paused_by      text,
    paused_note    text
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

-- One row for each tick, or for a range of `count` ticks with the same outcome. The ledger is kept for longer than the
-- history: before an execution is deleted, its final status is copied to `ended`.
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
-- The ledger is read between two instants: a range that began earlier is found by its end.
CREATE INDEX tick_ranges ON tick (schedule, until) WHERE until > at;
-- Finds the ticks that lately started nothing.
CREATE INDEX tick_left_out ON tick (decided_at) WHERE execution IS NULL;

CREATE TABLE calendar (
    namespace  text NOT NULL,
    name       text NOT NULL,
    days       text NOT NULL,
    updated_at bigint NOT NULL,
    -- As in `queue`.
    revision   bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (namespace, name)
);

-- Pieces of the logs of all attempts: the lines from number `first` to number `last` of one attempt, as JSON.
-- Partitioned like execution.
CREATE TABLE log (
    id    uuid NOT NULL,
    fence integer NOT NULL,
    last  integer NOT NULL,
    first integer NOT NULL,
    text  text NOT NULL
) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX log_id ON log (id, fence, last);
CREATE TABLE log_default PARTITION OF log DEFAULT;

-- The progress that the last attempt of an execution has reported, and its checkpoint. The checkpoint is JSON, and is
-- kept when another attempt begins.
CREATE TABLE note (
    id         uuid PRIMARY KEY,
    at         bigint NOT NULL,
    done       double precision,
    total      double precision,
    fence      integer NOT NULL,
    suspicion  integer NOT NULL DEFAULT 0,
    note       text,
    checkpoint text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Circuit breakers. A breaker with opened_at is open; from retry_at on, one probe may start.
CREATE TABLE breaker (
    namespace   text NOT NULL,
    name        text NOT NULL,
    opened_at   bigint,
    retry_at    bigint,
    wait        bigint NOT NULL DEFAULT 0,
    probe_until bigint,
    failures    integer NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, name)
) WITH (fillfactor = 50);

-- Which worker last ran an execution with this value of an argument.
CREATE TABLE affinity (
    used_at   bigint NOT NULL,
    worker    bigint NOT NULL,
    namespace text NOT NULL,
    app       text NOT NULL,
    key       text NOT NULL,
    PRIMARY KEY (namespace, app, key)
) WITH (fillfactor = 70);

-- Workflows. A run is an execution of a workflow: while it is open it has a row in `run`, and its execution waits behind a
-- blocker of kind `run`. `letters` has one letter per step of the graph (domain/workflow/letters.py). The row is the lock
-- for every decision about the run, and is locked after all other rows.
CREATE TABLE run (
    id           uuid PRIMARY KEY,
    root         uuid NOT NULL,
    parent       uuid,
    parent_step  integer,
    parent_item  integer,
    depth        integer NOT NULL,
    version      bigint NOT NULL,
    opened_at    bigint NOT NULL,
    -- When the sweeper looks at the run next (domain/workflow/next_look.py).
    look_at      bigint NOT NULL,
    deadline     bigint,
    paused_at    bigint,
    namespace    text NOT NULL,
    app          text NOT NULL,
    job          text NOT NULL,
    -- The digest of the pinned version, and what was pinned of each job at the opening, as a JSON object.
    graph        text NOT NULL,
    pinned       text NOT NULL,
    letters      text NOT NULL,
    -- Null, or why the run is stopping: no step starts any more except those with the rule `always`.
    stopping     text,
    -- Set from the moment at which the run stops until `tell_steps` has cancelled its open steps.
    told         integer,
    -- The run that this one retries: it may refer to results of earlier runs.
    retry_of     uuid,
    -- `undo`: the run that undoes this one, set when the run is undoing. `undo_of`: the run that this one undoes.
    undo         uuid,
    undo_of      uuid,
    paused_by    text,
    paused_note  text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_told ON run (id) WHERE told IS NOT NULL;
CREATE INDEX run_paused ON run (id) WHERE paused_at IS NOT NULL;
CREATE INDEX run_look ON run (look_at);
CREATE INDEX run_retry ON run (id) WHERE retry_of IS NOT NULL;

-- Runs that have ended: what is needed to show them and to retry them.
CREATE TABLE run_ended (
    id           uuid NOT NULL,
    root         uuid NOT NULL,
    parent       uuid,
    parent_step  integer,
    parent_item  integer,
    depth        integer NOT NULL,
    version      bigint NOT NULL,
    opened_at    bigint NOT NULL,
    pinned       text NOT NULL,
    letters      text NOT NULL,
    stopping     text,
    undo         uuid,
    undo_of      uuid,
    -- 1 if this is a sub-run with steps that an undo of the run above would undo.
    undoable     integer NOT NULL
) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX run_ended_id ON run_ended (id);
CREATE TABLE run_ended_default PARTITION OF run_ended DEFAULT;
-- Which execution is which step of a run. The item of a step that is no map is 0. A step that was kept by a retry has
-- the execution of the earlier run.
CREATE TABLE step (
    run       uuid NOT NULL,
    number    integer NOT NULL,
    item      integer NOT NULL,
    execution uuid NOT NULL
) PARTITION BY RANGE (run);
CREATE UNIQUE INDEX step_run ON step (run, number, item);
CREATE TABLE step_default PARTITION OF step DEFAULT;

-- Maps that still have items to insert, or whose items have to be told to stop. `next_item` is the first item without an
-- execution, `told_item` the first one that was not told, and `first_id` is the first execution of the last chunk.
-- The expander looks at the map from `look_at` on.
CREATE TABLE map_open (
    run         uuid NOT NULL,
    number      integer NOT NULL,
    width       integer NOT NULL,
    next_item   integer NOT NULL,
    told_item   integer NOT NULL DEFAULT 0,
    look_at     bigint NOT NULL,
    first_id    uuid,
    PRIMARY KEY (run, number)
) WITH (fillfactor = 50);

-- The items of a map by outcome, in shards: finishes of different items change different rows.
CREATE TABLE map_tally (
    run       uuid NOT NULL,
    number    integer NOT NULL,
    shard     integer NOT NULL,
    open      integer NOT NULL,
    success   integer NOT NULL,
    failed    integer NOT NULL,
    cancelled integer NOT NULL,
    skipped   integer NOT NULL,
    PRIMARY KEY (run, number, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Which jobs start after which. `met` is the execution of the upstream whose end counts for the next round; null until
-- there is one. The rows of a job are the lock for its rounds.
CREATE TABLE dependency (
    namespace    text NOT NULL,
    app          text NOT NULL,
    job          text NOT NULL,
    upstream_app text NOT NULL,
    upstream     text NOT NULL,
    outcome      text NOT NULL,
    met          uuid,
    PRIMARY KEY (namespace, app, job, upstream_app, upstream)
);
CREATE INDEX dependency_upstream ON dependency (namespace, upstream_app, upstream);

-- Events. A row is written once. Partitioned like execution.
CREATE TABLE event (
    id         uuid NOT NULL,
    -- The event that this one repeats.
    replay_of  uuid,
    emitted_at bigint NOT NULL,
    namespace  text NOT NULL,
    name       text NOT NULL,
    -- Empty if the event has none.
    subject    text NOT NULL,
    key        text,
    actor      text NOT NULL,
    payload    text NOT NULL
) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX event_id ON event (id);
CREATE INDEX event_name ON event (namespace, name, emitted_at);
CREATE INDEX event_subject ON event (namespace, name, subject, emitted_at) WHERE subject <> '';
CREATE INDEX event_namespace ON event (namespace, id);
CREATE TABLE event_default PARTITION OF event DEFAULT;

-- Events that upkeep has not yet checked against all subscriptions. The subscribers up to `after`, in their order, are
-- done. A replay also delivers the event to jobs that were declared after it was emitted.
CREATE TABLE event_open (
    event     uuid PRIMARY KEY,
    is_replay integer NOT NULL,
    after     text NOT NULL COLLATE "C"
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Which subscriber gets the events of a name. A subscriber is a job (its app and name), or a step of a run that waits:
-- then `execution` is that step, and the row is deleted when the step ends. An empty subject matches every event.
--
-- An emit and a wait that overlap do not see each other. So a new wait is `unsure` (ops/events/waits.py). The column is
-- 0 until upkeep has read the row, and then the id of the transaction that has read it. Once the xmin of a snapshot has
-- reached that id, upkeep reads the events again and sets the column to NULL.
CREATE TABLE subscription (
    since_at   bigint NOT NULL,
    unsure     bigint DEFAULT 0,
    execution  uuid,
    namespace  text NOT NULL,
    name       text NOT NULL,
    subject    text NOT NULL,
    subscriber text NOT NULL COLLATE "C",
    app        text,
    job        text,
    -- Both are JSON. `filter`: which payloads match (domain/event_filter.py). `target`: for a job, what a delivery needs
    -- from its definition; for a step, the ids of events that it does not take.
    filter     text,
    target     text,
    PRIMARY KEY (namespace, name, subject, subscriber)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX subscription_job ON subscription (namespace, app) WHERE app IS NOT NULL;
CREATE INDEX subscription_execution ON subscription (execution) WHERE execution IS NOT NULL;
CREATE INDEX subscription_unsure ON subscription (subscriber) WHERE unsure IS NOT NULL;

-- Which subscriber has received which event, and the execution that the event started or woke. Partitioned like event.
CREATE TABLE delivery (
    event      uuid NOT NULL,
    execution  uuid NOT NULL,
    at         bigint NOT NULL,
    subscriber text NOT NULL
) PARTITION BY RANGE (event);
CREATE UNIQUE INDEX delivery_event ON delivery (event, subscriber);
CREATE TABLE delivery_default PARTITION OF delivery DEFAULT;

-- Tokens of the HTTP API. The text of a token is known only to its holder: `digest` is its SHA-256, `ending` its last
-- four characters. A revoked token stays, so that its name is known in the audit trail. Lists are JSON. After a
-- rotation the old secret is valid until `old_until`.
CREATE TABLE token (
    id           uuid PRIMARY KEY,
    namespace    text NOT NULL,
    name         text NOT NULL,
    role         text,
    scopes       text NOT NULL,
    namespaces   text NOT NULL,
    groups       text NOT NULL DEFAULT '[]',
    only_queues  text,
    only_jobs    text,
    digest       text NOT NULL UNIQUE,
    ending       text NOT NULL,
    old_digest   text UNIQUE,
    old_until    bigint,
    created_at   bigint NOT NULL,
    created_by   text NOT NULL,
    expires_at   bigint,
    last_used_at bigint,
    revoked_at   bigint,
    revoked_by   text
);
CREATE INDEX token_namespace ON token (namespace, id);
CREATE UNIQUE INDEX token_name ON token (namespace, name) WHERE revoked_at IS NULL;

-- A browser's sign-in; it ends with its token.
CREATE TABLE session (
    digest     text PRIMARY KEY,
    token      uuid NOT NULL,
    created_at bigint NOT NULL,
    used_at    bigint NOT NULL
);
CREATE INDEX session_token ON session (token);
CREATE INDEX session_used ON session (used_at);

-- A request that succeeded, by its Idempotency-Key; written in the transaction of its effect. `route` is method and
-- path, `digest` the SHA-256 of query and body, `answer` the body of the answer.
CREATE TABLE request_key (
    namespace  text NOT NULL,
    actor      text NOT NULL,
    route      text NOT NULL,
    key        text NOT NULL,
    digest     text NOT NULL,
    status     integer NOT NULL,
    headers    text NOT NULL,
    answer     text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (namespace, actor, route, key)
);
CREATE INDEX request_key_created ON request_key (created_at);

-- A job that was deleted: its name may be used again, its history is found by its id. Its versions are those from
-- `base` + 1 to `last`.
CREATE TABLE deleted_job (
    id          uuid PRIMARY KEY,
    namespace   text NOT NULL,
    app         text NOT NULL,
    name        text NOT NULL,
    version     bigint NOT NULL,
    base        bigint NOT NULL,
    last        bigint NOT NULL,
    origin      text NOT NULL,
    revision    bigint NOT NULL,
    created_at  bigint,
    created_by  text,
    deleted_at  bigint NOT NULL,
    deleted_by  text NOT NULL
);
CREATE INDEX deleted_job_name ON deleted_job (namespace, name, app, id);

-- A definition with parameters, of which jobs are made. `version` counts its changes.
CREATE TABLE template (
    namespace  text NOT NULL,
    name       text NOT NULL,
    version    bigint NOT NULL,
    content    text NOT NULL,
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- One row for each tag of an execution.
CREATE TABLE tag (
    namespace text NOT NULL,
    tag       text NOT NULL,
    id        uuid NOT NULL,
    PRIMARY KEY (namespace, tag, id)
);
-- Finds the rows of an execution that is deleted.
CREATE INDEX tag_id ON tag (id);

-- The processes of the HTTP API that are alive. A rate is shared among them by equal parts.
CREATE TABLE server_node (
    id      uuid PRIMARY KEY,
    seen_at bigint NOT NULL
);

-- Executions with a callback that have not ended.
CREATE TABLE callback_open (
    execution uuid PRIMARY KEY
);

-- Inbound webhooks. A row is an address that other systems post to: each accepted request becomes an event. `key` is
-- the random part of the address. A signature can only be checked with the secret itself; that of the scheme `bearer`
-- is stored as its SHA-256. After a rotation the old secret is valid until `old_until`. `revision` counts every change.
CREATE TABLE hook (
    id               uuid PRIMARY KEY,
    namespace        text NOT NULL,
    name             text NOT NULL,
    key              text NOT NULL UNIQUE,
    event            text NOT NULL,
    scheme           text NOT NULL,
    -- Where the id of a request is found by which a repeated one is recognised: a header or a JSON pointer.
    dedupe_header    text,
    dedupe_pointer   text,
    -- Of the scheme `hmac`.
    signature_header text,
    timestamp_header text,
    description      text NOT NULL,
    secret           text NOT NULL,
    old_secret       text,
    old_until        bigint,
    revision         bigint NOT NULL,
    created_at       bigint NOT NULL,
    created_by       text NOT NULL,
    updated_at       bigint NOT NULL
);
CREATE UNIQUE INDEX hook_name ON hook (namespace, name);

-- Statistics. They are counted in the transactions that create and end executions, so they do not depend on how long the
-- history is kept.

-- What one transaction has created or ended: one row for each lane and outcome. Rows are only appended, so no two
-- transactions wait for each other. `outcome` is a final status, `created` or `retries`. The times are JSON: a histogram
-- as in `stat`, or an array of microseconds. Upkeep adds the rows to `stat` and deletes them (ops/statistics.py).
CREATE TABLE stat_delta (
    at              bigint NOT NULL,
    lane            integer NOT NULL,
    count           integer NOT NULL,
    outcome         text NOT NULL,
    run_times       text,
    start_latencies text,
    latenesses      text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_threshold = -1);

-- One row for each lane and minute and for each lane and five minutes (kept for 48 hours), and for each lane and hour
-- (kept for 400 days). The times are histograms: JSON objects of counts by bucket (domain/statistics.py).
CREATE TABLE stat (
    at              bigint NOT NULL,
    step_s          integer NOT NULL,
    lane            integer NOT NULL,
    created         bigint NOT NULL,
    success         bigint NOT NULL,
    failed          bigint NOT NULL,
    cancelled       bigint NOT NULL,
    skipped         bigint NOT NULL,
    retries         bigint NOT NULL,
    namespace       text NOT NULL,
    run_times       text NOT NULL,
    start_latencies text NOT NULL,
    latenesses      text NOT NULL,
    PRIMARY KEY (namespace, step_s, at, lane)
) WITH (fillfactor = 70);
CREATE INDEX stat_old ON stat (step_s, at);

-- Samples of each namespace, taken once a minute: of each queue (`pool` is empty), of each pool (`queue` is empty), and
-- of all together (both are empty). The row of an hour has the highest value of each column.
CREATE TABLE stat_sample (
    at         bigint NOT NULL,
    step_s     integer NOT NULL,
    queued     bigint NOT NULL,
    -- Microseconds.
    oldest_age bigint NOT NULL,
    busy       bigint NOT NULL,
    slots      bigint NOT NULL,
    namespace  text NOT NULL,
    queue      text NOT NULL,
    pool       text NOT NULL,
    PRIMARY KEY (namespace, step_s, at, queue, pool)
) WITH (fillfactor = 70);
CREATE INDEX stat_sample_old ON stat_sample (step_s, at);

-- The locks for these chores: one supervisor at a time does each of them.
CREATE TABLE stat_chore (
    name    text PRIMARY KEY,
    next_at bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO stat_chore (name, next_at) VALUES ('fold', 0), ('sample', 0);

-- Actions on many executions, runs, events, schedules or jobs at once. `filter` and `options` are JSON, `errors` a JSON
-- list. The ids are collected first, up to `mark`, then acted on in the order of their positions: the first `done` +
-- `failed` of them have been. `next_at` is when an open action is looked at next; null if it has ended.
CREATE TABLE action (
    id           uuid PRIMARY KEY,
    at_most      bigint NOT NULL,
    as_of        bigint NOT NULL,
    created_at   bigint NOT NULL,
    started_at   bigint,
    completed_at bigint,
    cancel_at    bigint,
    next_at      bigint,
    total        bigint NOT NULL DEFAULT 0,
    done         bigint NOT NULL DEFAULT 0,
    failed       bigint NOT NULL DEFAULT 0,
    rate         double precision,
    namespace    text NOT NULL,
    actor        text NOT NULL,
    verb         text NOT NULL,
    target       text NOT NULL,
    filter       text NOT NULL,
    options      text NOT NULL,
    note         text,
    status       text NOT NULL,
    mark         text,
    errors       text NOT NULL DEFAULT '[]'
);
CREATE INDEX action_namespace ON action (namespace, id);
CREATE INDEX action_next ON action (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE action_item (
    action   uuid NOT NULL,
    position bigint NOT NULL,
    subject  text NOT NULL,
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

-- Enqueue from SQL, in any language and transaction: SELECT rota.enqueue('send', '{"to": "a@b.c"}').
--
-- It does the same as ops/enqueue.py; tests/transaction compares the two. It runs with the rights of its caller. The
-- search path is fixed, with the temporary schema last, so that no caller can replace Rota's tables by temporary ones.
-- The owner may therefore make it SECURITY DEFINER.

SELECT set_config('search_path', format('%I, pg_temp', current_schema()), true);

CREATE FUNCTION enqueue(
    job text,
    arguments jsonb DEFAULT '{}',
    app text DEFAULT NULL,
    namespace text DEFAULT 'default',
    queue text DEFAULT NULL,
    priority integer DEFAULT NULL,
    delay interval DEFAULT NULL,
    run_at timestamptz DEFAULT NULL,
    key text DEFAULT NULL,
    tags text[] DEFAULT NULL,
    start_by timestamptz DEFAULT NULL,
    start_within interval DEFAULT NULL,
    timeout interval DEFAULT NULL,
    retry integer DEFAULT NULL,
    headers jsonb DEFAULT NULL,
    notify boolean DEFAULT false
) RETURNS uuid
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $function$
DECLARE
    hidden    CONSTANT text := '[[:cntrl:]\u00A0\u00AD\u200B-\u200F\u2028-\u202F\u205F-\u2064\u3000\uFEFF]';
    infinite  CONSTANT jsonpath := '$.** ? (@.type() == "number" && (@ > 1.7976931348623158e308 || '
                                   '@ < -1.7976931348623158e308))';
    now_us    bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    written   text;
    apps      text[];
    wrong     text;
    version   bigint;
    defined   jsonb;
    required  text;
    lane      integer;
    policy    text;
    max_depth bigint;
    depth     bigint;
    oldest    bigint;
    after_s   numeric;
    due_at    bigint;
    deadline  bigint;
    place     bigint;
    hash      text;
    holder    uuid;
    known     text;
    stored    text;
    id        uuid;
    overrides jsonb;
BEGIN
    -- Invalid arguments, with the messages of the Python API.
    IF enqueue.job IS NULL OR enqueue.namespace IS NULL THEN
        RAISE 'the job and the namespace must be given' USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.arguments IS NULL OR jsonb_typeof(enqueue.arguments) <> 'object' THEN
        RAISE '%(): the arguments must be one JSON object, by parameter name', enqueue.job USING ERRCODE = 'RT002';
    END IF;
    IF enqueue.delay IS NOT NULL AND enqueue.run_at IS NOT NULL THEN
        RAISE 'give delay or run_at, not both' USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.start_by IS NOT NULL AND enqueue.start_within IS NOT NULL THEN
        RAISE 'give start_by or start_within, not both' USING ERRCODE = 'RT003';
    END IF;
    IF NOT extract(epoch FROM coalesce(enqueue.delay, '0'::interval)) BETWEEN 0 AND 3153600000 THEN
        RAISE 'delay must be between 0 and 100 years, not %', enqueue.delay USING ERRCODE = 'RT003';
    END IF;
    IF NOT extract(epoch FROM coalesce(enqueue.start_within, '1 s'::interval)) BETWEEN 0.000001 AND 3153600000 THEN
        RAISE 'start_within must be longer than zero and at most 100 years, not %', enqueue.start_within
            USING ERRCODE = 'RT003';
    END IF;
    IF NOT (isfinite(coalesce(enqueue.run_at, now())) AND isfinite(coalesce(enqueue.start_by, now()))) THEN
        RAISE 'run_at and start_by must be instants, not infinity' USING ERRCODE = 'RT003';
    END IF;
    IF NOT (coalesce(enqueue.run_at, now()) BETWEEN '0001-01-01Z' AND '9999-12-31Z'
            AND coalesce(enqueue.start_by, now()) BETWEEN '0001-01-01Z' AND '9999-12-31Z') THEN
        RAISE 'run_at and start_by must be in the years 1 to 9999' USING ERRCODE = 'RT003';
    END IF;
    IF NOT coalesce(enqueue.priority, 0) BETWEEN -100 AND 100 THEN
        RAISE 'priority must be between -100 and 100, not %', enqueue.priority USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.queue IS NOT NULL
       AND (length(enqueue.queue) > 128 OR enqueue.queue !~ '^[A-Za-z_][A-Za-z0-9_.:-]*$' OR enqueue.queue ~ '\n') THEN
        RAISE 'a queue''s name must start with a letter or _ and be at most 128 characters long (letters, digits, and '
              'any of _ . : -); it is %', quote_literal(left(enqueue.queue, 64)) USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.key IS NOT NULL AND (length(enqueue.key) NOT BETWEEN 1 AND 512 OR enqueue.key ~ hidden) THEN
        RAISE 'key must be 1 to 512 printable characters, not %', quote_literal(left(enqueue.key, 64))
            USING ERRCODE = 'RT003';
    END IF;
    IF enqueue.tags IS NOT NULL THEN
        IF array_ndims(enqueue.tags) > 1 THEN
            RAISE 'tags must be one list of texts' USING ERRCODE = 'RT003';
        END IF;
        IF cardinality(enqueue.tags) > 50 THEN
            RAISE 'an execution has at most 50 tags, not %', cardinality(enqueue.tags) USING ERRCODE = 'RT003';
        END IF;
        IF EXISTS (SELECT FROM unnest(enqueue.tags) t
                   WHERE t IS NULL OR length(t) NOT BETWEEN 1 AND 512 OR t ~ hidden) THEN
            RAISE 'a tag must be 1 to 512 printable characters' USING ERRCODE = 'RT003';
        END IF;
    END IF;
    IF NOT extract(epoch FROM coalesce(enqueue.timeout, '1 s'::interval)) BETWEEN 0.000001 AND 3153600000 THEN
        RAISE 'timeout must be longer than zero and at most 100 years, not %', enqueue.timeout USING ERRCODE = 'RT003';
    END IF;
    IF NOT coalesce(enqueue.retry, 1) BETWEEN 1 AND 1000 THEN
        RAISE 'retry is the number of attempts, between 1 and 1000, not %', enqueue.retry USING ERRCODE = 'RT003';
    END IF;
    IF jsonb_typeof(enqueue.headers) <> 'object'
       OR jsonb_path_exists(enqueue.headers, '$.* ? (@.type() != "string")') THEN
        RAISE 'headers must be one JSON object of texts' USING ERRCODE = 'RT003';
    END IF;
    IF EXISTS (SELECT FROM jsonb_object_keys(enqueue.headers) n
               WHERE length(n) NOT BETWEEN 1 AND 512 OR n ~ hidden) THEN
        RAISE 'a header''s name must be 1 to 512 printable characters' USING ERRCODE = 'RT003';
    END IF;
    IF octet_length(enqueue.headers::text) > 16384 THEN
        RAISE 'headers take at most 16384 bytes of JSON, not %', octet_length(enqueue.headers::text)
            USING ERRCODE = 'RT003';
    END IF;
    written := enqueue.arguments::text;
    IF octet_length(written) > 1048576 THEN
        RAISE '%(): the arguments are % bytes of JSON; at most 1048576 are stored. Keep large data elsewhere and pass a '
              'reference.', enqueue.job, octet_length(written) USING ERRCODE = 'RT002';
    END IF;
    IF length(written) > 200 AND jsonb_path_exists(enqueue.arguments, 'strict $.**{201}') THEN
        RAISE '%(): the arguments are nested deeper than 200 levels', enqueue.job USING ERRCODE = 'RT002';
    END IF;

    IF jsonb_path_exists(enqueue.arguments, infinite) THEN
        RAISE '%(): a number in the arguments is too large', enqueue.job USING ERRCODE = 'RT002';
    END IF;

    -- The job, with its current definition.
    IF enqueue.app IS NULL THEN
        SELECT array_agg(j.app ORDER BY j.app) INTO apps
        FROM job j WHERE j.namespace = enqueue.namespace AND j.name = enqueue.job;
        IF cardinality(apps) > 1 THEN
            RAISE 'the apps % have a job %: say which with app => ...', array_to_string(apps, ', '),
                quote_literal(enqueue.job) USING ERRCODE = 'RT001';
        END IF;
        enqueue.app := apps[1];
    END IF;
    SELECT j.version, v.definition::jsonb, j.requirements INTO version, defined, required
    FROM job j JOIN job_version v
        ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
    WHERE j.namespace = enqueue.namespace AND j.app = enqueue.app AND j.name = enqueue.job;
    IF version IS NULL THEN
        RAISE '% has no job %: check the name, or start a worker of the app once so that its jobs are known',
            coalesce('app ' || quote_literal(enqueue.app), 'the namespace ' || quote_literal(enqueue.namespace)),
            quote_literal(enqueue.job) USING ERRCODE = 'RT001';
    END IF;
    enqueue.queue := coalesce(enqueue.queue, defined ->> 'queue');
    enqueue.priority := coalesce(enqueue.priority, (defined ->> 'priority')::integer);

    -- Arguments by name. Their types are checked when the function is called.
    SELECT max(concat(CASE WHEN p.name IS NULL THEN 'there is no argument `' ELSE 'missing argument `' END,
                      coalesce(a.name, p.name), '`')) INTO wrong
    FROM jsonb_object_keys(enqueue.arguments) a (name)
    FULL JOIN jsonb_each(defined -> 'parameters') p (name, about) ON p.name = a.name
    WHERE (p.name IS NULL AND NOT jsonb_path_exists(defined, '$.parameters.*.others'))
       OR (a.name IS NULL AND (p.about ->> 'required')::boolean);
    IF wrong IS NOT NULL THEN
        RAISE '%(): %; it takes (%)', enqueue.job, wrong, (
            SELECT string_agg(p.name || CASE WHEN (p.about ->> 'required')::boolean THEN '' ELSE ' = ...' END, ', ')
            FROM jsonb_each(defined -> 'parameters') p (name, about)) USING ERRCODE = 'RT002';
    END IF;

    -- The lane. The first enqueue to a queue that no definition names creates the queue.
    FOR look IN 1..2 LOOP
        SELECT l.id, q.policy, q.max_depth INTO lane, policy, max_depth
        FROM lane l JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
        WHERE l.namespace = enqueue.namespace AND l.app = enqueue.app AND l.job = enqueue.job
          AND l.queue = enqueue.queue AND l.requirements = required;
        EXIT WHEN lane IS NOT NULL;
        INSERT INTO queue (namespace, name) VALUES (enqueue.namespace, enqueue.queue) ON CONFLICT DO NOTHING;
        INSERT INTO lane (namespace, app, job, queue, requirements)
        VALUES (enqueue.namespace, enqueue.app, enqueue.job, enqueue.queue, required) ON CONFLICT DO NOTHING;
    END LOOP;

    -- The due time and the deadline.
    due_at := CASE WHEN enqueue.run_at IS NOT NULL
                   THEN greatest(now_us, round(extract(epoch FROM enqueue.run_at) * 1000000))
                   ELSE now_us + round(extract(epoch FROM coalesce(enqueue.delay, '0'::interval)) * 1000000) END;
    deadline := CASE WHEN enqueue.start_by IS NOT NULL THEN round(extract(epoch FROM enqueue.start_by) * 1000000)
                     ELSE due_at + round(1000000 * coalesce(extract(epoch FROM enqueue.start_within),
                                                            (defined ->> 'start_within_s')::numeric)) END;

    overrides := jsonb_strip_nulls(jsonb_build_object(
        'timeout_s', extract(epoch FROM enqueue.timeout),
        'retry', CASE WHEN enqueue.retry IS NOT NULL
                      THEN jsonb_build_object('policy', 'Exponential', 'attempts', enqueue.retry) END));

    -- Milliseconds, then the fraction of one, so that ids sort by their time.
    id := (lpad(to_hex(now_us / 1000), 12, '0') || '7' || lpad(to_hex(now_us % 1000 * 4096 / 1000), 3, '0')
           || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid;

    -- One caller at a time for each key, until the commit.
    IF enqueue.key IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(
            concat_ws(' ', current_schema(), enqueue.namespace, enqueue.app, enqueue.job), 0));
        PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws(
            ' ', current_schema(), enqueue.namespace, enqueue.app, enqueue.job, 'idempotency', enqueue.key), 0));
        hash := encode(sha256(convert_to(written, 'UTF8')), 'hex');
        SELECT k.holder, k.arguments_hash INTO holder, known FROM unique_key k
        WHERE k.namespace = enqueue.namespace AND k.app = enqueue.app AND k.job = enqueue.job
          AND k.kind = 'idempotency' AND k.key = enqueue.key;
        IF known = hash THEN
            RETURN holder;
        ELSIF known IS NOT NULL THEN
            SELECT x.arguments INTO stored FROM execution x WHERE x.id = holder;
            -- A unique key may have answered the call that took this key, with an execution of other arguments.
            RAISE 'the key % belongs to execution % of job % with the arguments %; this call has %. Use another key, or '
                  'the same arguments.', quote_literal(enqueue.key), holder, quote_literal(enqueue.job),
                  left(coalesce(stored, '(pruned)'), 200) ||
                  CASE WHEN encode(sha256(convert_to(stored::jsonb::text, 'UTF8')), 'hex') <> known
                       THEN ', which a unique key returned to a call with other arguments' ELSE '' END,
                  left(written, 200) USING ERRCODE = 'RT004';
        END IF;
        INSERT INTO unique_key (namespace, app, job, kind, key, holder, arguments_hash, taken_at)
        VALUES (enqueue.namespace, enqueue.app, enqueue.job, 'idempotency', enqueue.key, id, hash, now_us)
        -- A conflict means that the snapshot is older than the key: the update then fails with a serialization error.
        ON CONFLICT ON CONSTRAINT unique_key_pkey DO UPDATE SET holder = excluded.holder;
    END IF;

    IF max_depth IS NOT NULL THEN
        SELECT count(*) INTO depth FROM (
            SELECT FROM lane l JOIN ready r ON r.lane = l.id
            WHERE l.namespace = enqueue.namespace AND l.queue = enqueue.queue LIMIT max_depth + 1) counted;
        IF depth >= max_depth THEN
            SELECT min(x.run_at) INTO oldest FROM lane l
            CROSS JOIN LATERAL (SELECT r.id FROM ready r WHERE r.lane = l.id ORDER BY r.rank, r.id LIMIT 1) head
            JOIN execution x ON x.id = head.id
            WHERE l.namespace = enqueue.namespace AND l.queue = enqueue.queue;
            after_s := least(60, greatest(1, round(coalesce(now_us - oldest, 0) / 20000000.0, 1)));
            RAISE 'queue % is full (% of % queued): nothing was accepted, retry after % s', quote_literal(enqueue.queue),
                depth, max_depth, trim_scale(after_s) USING ERRCODE = 'RT005';
        END IF;
    END IF;

    INSERT INTO execution (
        id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, key, created_at, run_at, deadline,
        tags, headers, overrides)
    VALUES (
        id, enqueue.namespace, enqueue.app, enqueue.job, version, 'sql:' || session_user, enqueue.queue, lane,
        enqueue.priority, written, enqueue.key, now_us, due_at, deadline,
        array_to_json(enqueue.tags)::text, nullif(enqueue.headers, '{}')::text, nullif(overrides, '{}')::text);
    IF deadline IS NOT NULL THEN
        INSERT INTO expiry (deadline, id) VALUES (deadline, id);
    END IF;
    IF enqueue.tags IS NOT NULL THEN
        INSERT INTO tag (namespace, tag, id)
        SELECT DISTINCT enqueue.namespace, t.name, id FROM unnest(enqueue.tags) t (name);
    END IF;
    -- The edges of its dependencies are ignored and cleared. In the order of the key to avoid a deadlock.
    PERFORM FROM dependency d
    WHERE d.namespace = enqueue.namespace AND d.app = enqueue.app AND d.job = enqueue.job
    ORDER BY d.upstream_app, d.upstream FOR UPDATE;
    IF FOUND THEN
        UPDATE dependency d SET met = NULL
        WHERE d.namespace = enqueue.namespace AND d.app = enqueue.app AND d.job = enqueue.job AND d.met IS NOT NULL;
    END IF;
    IF due_at <= now_us THEN
        place := CASE policy WHEN 'fifo' THEN due_at ELSE due_at - enqueue.priority * 60000000::bigint END;
        INSERT INTO ready (lane, rank, id, fence, attempts, crashes) VALUES (lane, place, id, 0, 0, 0);
    ELSE
        INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes)
        VALUES (id, lane, enqueue.priority, due_at, 0, 0, 0);
    END IF;
    INSERT INTO stat_delta (at, lane, count, outcome) VALUES (now_us, lane, 1, 'created');
    IF enqueue.notify THEN
        PERFORM pg_notify(current_schema() || '_hints', CASE WHEN place IS NULL
            THEN jsonb_build_array(jsonb_build_object('type', 'due', 'at', due_at))
            ELSE jsonb_build_array(jsonb_build_object('type', 'ready', 'lanes', jsonb_build_object(lane, place)))
            END::text);
    END IF;
    RETURN id;
END
$function$;

COMMENT ON FUNCTION enqueue IS 'Accepts one execution of a job in the caller''s transaction and returns its id.';

SELECT set_config('search_path', quote_ident(current_schema()), true);
