-- name: place
-- Executions of several batches whose origins differ only in the parent. `:rows` has the columns that may differ between
-- the batches; PLACED takes all other columns from parameters.
INSERT INTO execution (PLACED, run, step, map_index, inputs, created_at)
SELECT PLACED(e.id, e.arguments, e.namespace, e.app, e.job, e.queue, e.job_version, e.lane, e.priority, e.run_at,
              e.deadline, e.schedule, e.tick, e.catch_up, e.event, e.parent), e.run, e.step, e.map_index, e.inputs, :now
FROM EACH(:rows, id uuid, arguments text, namespace text, app text, job text, queue text, job_version bigint, lane int, priority int, run_at bigint, deadline bigint, schedule text, tick bigint, catch_up int, event text, parent uuid, run uuid, step int, map_index int, inputs text) e

-- name: place_alike_ready @sqlite
-- The executions of one batch differ only in id and arguments. The last statement is for the statistics.
WITH e AS ITEMS(:items, id uuid, arguments text)
INSERT INTO execution (PLACED, created_at) SELECT PLACED(e.id, e.arguments), :now FROM e;
WITH e AS ITEMS(:items, id uuid, arguments text)
INSERT INTO ready (lane, rank, id, fence, attempts, crashes) SELECT :lane, :rank, e.id, 0, 0, 0 FROM e;
INSERT INTO stat_delta (at, lane, count, outcome) VALUES (:now, :lane, :count, 'created')

-- name: place_alike_ready @postgres
WITH e AS ITEMS(:items, id uuid, arguments text),
known AS (INSERT INTO execution (PLACED, created_at) SELECT PLACED(e.id, e.arguments), :now FROM e),
counted AS (INSERT INTO stat_delta (at, lane, count, outcome) VALUES (:now, :lane, :count, 'created'))
INSERT INTO ready (lane, rank, id, fence, attempts, crashes)
SELECT :lane, :rank, id, 0, 0, 0 FROM e

-- name: place_alike_scheduled
INSERT INTO execution (PLACED, created_at)
SELECT PLACED(e.id, e.arguments), :now FROM PAIRS(:items, id uuid, arguments text) e;
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes)
SELECT id, :lane, :priority, :run_at, 0, 0, 0 FROM KEYS(:items, id uuid) e;
INSERT INTO stat_delta (at, lane, count, outcome) VALUES (:now, :lane, :count, 'created')

-- name: place_at_once @postgres
-- Inserts and returns nothing if the job or the queue does not exist yet, if the queue has a depth limit, if the job
-- depends on others, or if the time in an id is far from now.
WITH t AS MATERIALIZED (SELECT CAST(:now AS bigint) AS now),
r AS MATERIALIZED (
    SELECT t.now, j.version, l.id AS lane,
           t.now + CASE q.policy WHEN 'fifo' THEN CAST(:fifo AS bigint) ELSE CAST(:priority_rank AS bigint) END AS rank
    FROM job j JOIN t ON true
    JOIN lane l ON l.namespace = j.namespace AND l.app = j.app AND l.job = j.name AND l.queue = :queue
        AND l.requirements = j.requirements
    JOIN queue q ON q.namespace = j.namespace AND q.name = :queue
    WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job AND q.max_depth IS NULL
      AND NOT EXISTS (
          SELECT 1 FROM dependency d WHERE d.namespace = j.namespace AND d.app = j.app AND d.job = j.name)
      AND CAST(:first_made AS bigint) >= t.now - CAST(:skew AS bigint)
      AND CAST(:last_made AS bigint) <= t.now + CAST(:skew AS bigint)),
e AS ITEMS(:items, id uuid, arguments text),
known AS (
    INSERT INTO execution (PLACED, created_at)
    SELECT PLACED(e.id, e.arguments, r.version AS job_version, r.lane, r.now AS run_at), r.now FROM e, r),
placed AS (
    INSERT INTO ready (lane, rank, id, fence, attempts, crashes)
    SELECT r.lane, r.rank, e.id, 0, 0, 0 FROM e, r),
counted AS (
    INSERT INTO stat_delta (at, lane, count, outcome) SELECT r.now, r.lane, COUNT(e), 'created' FROM r)
SELECT lane, rank, version, now FROM r

-- name: arrive @sqlite
-- Inserts nothing if the route is no longer that of the job and the queue, if the queue has a depth limit, if the job
-- depends on others, or if the id is that of a placed execution. (If it is that of an arrival, the insert fails, and so
-- does the transaction that follows.)
INSERT INTO arrival (
    id, lane, rank, job_version, created_at, priority, actor, arguments, parent, replay_of, trace, headers, overrides,
    upstream)
SELECT :id, :lane, :rank, :job_version, :now, :priority, :actor, :arguments, :parent, :replay_of, :trace, :headers,
       :overrides, :upstream
FROM lane l
JOIN job j ON j.namespace = l.namespace AND j.app = l.app AND j.name = l.job AND j.requirements = l.requirements
JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE l.id = :lane AND l.namespace = :namespace AND l.app = :app AND l.job = :job AND l.queue = :queue
  AND j.version = :job_version AND q.policy = :policy AND q.max_depth IS NULL
  AND NOT EXISTS (SELECT 1 FROM dependency d WHERE d.namespace = l.namespace AND d.app = l.app AND d.job = l.job)
  AND NOT EXISTS (SELECT 1 FROM execution x WHERE x.id = :id)

-- name: has_arrivals @sqlite
SELECT 1 FROM arrival LIMIT 1

-- name: place_arrivals @sqlite
-- The statistics get one row for each lane and minute, which is their shortest step.
INSERT INTO execution (
    id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, created_at, run_at, parent,
    replay_of, trace, headers, overrides, upstream)
SELECT a.id, l.namespace, l.app, l.job, a.job_version, a.actor, l.queue, a.lane, a.priority, a.arguments, a.created_at,
       a.created_at, a.parent, a.replay_of, a.trace, a.headers, a.overrides, a.upstream
FROM arrival a CROSS JOIN lane l ON l.id = a.lane;
INSERT INTO ready (lane, rank, id, fence, attempts, crashes) SELECT lane, rank, id, 0, 0, 0 FROM arrival;
INSERT INTO stat_delta (at, lane, count, outcome)
SELECT min(created_at), lane, count(*), 'created' FROM arrival GROUP BY lane, created_at / 60000000;
DELETE FROM arrival

-- name: place_ready
INSERT INTO ready (lane, rank, id, fence, attempts, crashes, run)
SELECT lane, rank, id, 0, 0, 0, run FROM EACH(:rows, id uuid, lane int, rank bigint, run uuid) e

-- name: place_waiting
INSERT INTO waiting (id, lane, rank, since_at, fence, attempts, crashes, run)
SELECT id, lane, rank, :now, 0, 0, 0, run FROM EACH(:rows, id uuid, lane int, rank bigint, run uuid) e;
INSERT INTO blocker (execution, rank, kind, key)
SELECT execution, rank, kind, key FROM EACH(:blockers, execution uuid, rank bigint, kind text, key text) e

-- name: place_scheduled
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes, run)
SELECT id, lane, priority, run_at, 0, 0, 0, run
FROM EACH(:rows, id uuid, lane int, priority int, run_at bigint, run uuid) e

-- name: place_tags
INSERT INTO tag (namespace, tag, id) SELECT namespace, tag, id FROM EACH(:rows, namespace text, tag text, id uuid) e

-- name: place_callbacks
INSERT INTO callback_open (execution) SELECT id FROM EACH(:rows, id uuid) e

-- name: place_expiries
INSERT INTO expiry (deadline, id) SELECT deadline, id FROM EACH(:rows, id uuid, deadline bigint) e

-- name: lock_keys @sqlite
-- SQLite has one writer at a time, so no lock is needed.
SELECT 1, 'read committed'

-- name: lock_keys @postgres
-- One caller at a time for each key, until the commit; locked in the order of the hashes to avoid a deadlock. A caller
-- with too many keys locks the whole job instead, which the other callers lock in share mode.
SELECT min(CASE WHEN CAST(:waits AS boolean) AND is_shared THEN (pg_advisory_xact_lock_shared(h)::text IS NOT NULL)::int
                WHEN CAST(:waits AS boolean) THEN (pg_advisory_xact_lock(h)::text IS NOT NULL)::int
                WHEN is_shared THEN pg_try_advisory_xact_lock_shared(h)::int
                ELSE pg_try_advisory_xact_lock(h)::int END),
       current_setting('transaction_isolation')
FROM (SELECT DISTINCT hashtextextended(concat_ws(' ', SCHEMA(), key), 0) AS h, is_shared
      FROM EACH(:keys, key text, is_shared boolean) e ORDER BY h) ordered

-- name: key_holders
SELECT key, holder, arguments_hash, taken_at FROM unique_key
WHERE namespace = :namespace AND app = :app AND job = :job AND kind = :kind AND key AMONG(:keys, text)

-- name: take_keys
INSERT INTO unique_key (namespace, app, job, kind, key, holder, arguments_hash, taken_at)
SELECT :namespace, :app, :job, :kind, key, holder, arguments_hash, :now
FROM EACH(:rows, key text, holder uuid, arguments_hash text) e WHERE true
ON CONFLICT (namespace, app, job, kind, key)
DO UPDATE SET holder = excluded.holder, arguments_hash = excluded.arguments_hash, taken_at = excluded.taken_at

-- name: queue_depth
SELECT count(*) FROM (
    SELECT 1 FROM lane l CROSS JOIN ready r ON r.lane = l.id
    WHERE l.namespace = :namespace AND l.queue = :queue LIMIT :most) counted

-- name: queue_oldest
SELECT min(x.run_at) FROM lane l
CROSS JOIN ready r ON r.lane = l.id AND r.id = (SELECT h.id FROM ready h WHERE h.lane = l.id ORDER BY h.rank, h.id LIMIT 1)
CROSS JOIN execution x ON x.id = r.id
WHERE l.namespace = :namespace AND l.queue = :queue

-- name: arguments_of
SELECT arguments FROM execution WHERE id = :id

-- name: postpone
-- The caller has locked the rows. If the job of a waiting execution is still paused when it is due, the next claim moves
-- it back to `waiting`.
UPDATE scheduled SET run_at = GREATEST(run_at, :run_at) WHERE id AMONG(:scheduled, uuid);
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes, first_start_at, run)
SELECT r.id, r.lane, x.priority, :run_at, r.fence, r.attempts, r.crashes, r.first_start_at, r.run
FROM ready r JOIN execution x ON x.id = r.id WHERE r.id AMONG(:queued, uuid);
DELETE FROM ready WHERE id AMONG(:queued, uuid);
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes, first_start_at, run)
SELECT w.id, w.lane, x.priority, :run_at, w.fence, w.attempts, w.crashes, w.first_start_at, w.run
FROM waiting w JOIN execution x ON x.id = w.id WHERE w.id AMONG(:waiting, uuid);
DELETE FROM blocker WHERE execution AMONG(:waiting, uuid);
DELETE FROM waiting WHERE id AMONG(:waiting, uuid)

-- name: move_deadlines
-- The old `expiry` row stays: when it is due, upkeep compares it with the deadline of the execution and drops it.
UPDATE execution SET deadline = e.deadline FROM EACH(:rows, id uuid, deadline bigint) e WHERE execution.id = e.id;
INSERT INTO expiry (deadline, id) SELECT deadline, id FROM EACH(:rows, id uuid, deadline bigint) e
WHERE deadline IS NOT NULL ON CONFLICT DO NOTHING
