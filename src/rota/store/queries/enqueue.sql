-- name: insert_executions
INSERT INTO execution (
    id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, key, created_at, run_at, deadline,
    parent, replay_of, tags, trace)
SELECT id, :namespace, :app, :job, :version, :actor, :queue, :lane, :priority, arguments, :key, :now, :run_at,
       :deadline, :parent, :replay_of, :tags, :trace
FROM EACH(:items, id uuid, arguments text) e

-- name: insert_ready @sqlite
INSERT INTO execution (
    id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, key, created_at, run_at, deadline,
    parent, replay_of, tags, trace)
SELECT id, :namespace, :app, :job, :version, :actor, :queue, :lane, :priority, arguments, :key, :now, :run_at,
       :deadline, :parent, :replay_of, :tags, :trace
FROM EACH(:items, id uuid, arguments text) e;
INSERT INTO ready (lane, rank, id, fence, attempts, crashes)
SELECT :lane, :rank, id, 0, 0, 0 FROM EACH(:items, id uuid, arguments text) e

-- name: insert_ready @postgres
-- What can be claimed at once, in one statement: most of what is ever enqueued.
WITH e AS MATERIALIZED (SELECT * FROM EACH(:items, id uuid, arguments text) t),
known AS (
    INSERT INTO execution (
        id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, key, created_at, run_at,
        deadline, parent, replay_of, tags, trace)
    SELECT id, :namespace, :app, :job, :version, :actor, :queue, :lane, :priority, arguments, :key, :now, :run_at,
           :deadline, :parent, :replay_of, :tags, :trace
    FROM e)
INSERT INTO ready (lane, rank, id, fence, attempts, crashes)
SELECT :lane, :rank, id, 0, 0, 0 FROM e

-- name: insert_at_once @postgres
-- The whole of an enqueue that may start now, in one statement. No row, and nothing done, if there is no such job or
-- queue yet, the queue has a limit, or an id was made far from now.
WITH t AS MATERIALIZED (SELECT CAST(:now AS bigint) AS now),
r AS MATERIALIZED (
    SELECT t.now, j.version, l.id AS lane,
           t.now + CASE q.policy WHEN 'fifo' THEN CAST(:fifo AS bigint) ELSE CAST(:priority_rank AS bigint) END AS rank
    FROM job j JOIN t ON true
    JOIN lane l ON l.namespace = j.namespace AND l.app = j.app AND l.queue = :queue
        AND l.requirements = j.requirements
    JOIN queue q ON q.namespace = j.namespace AND q.name = :queue
    WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job AND q.max_depth IS NULL
      AND CAST(:first_made AS bigint) >= t.now - CAST(:skew AS bigint)
      AND CAST(:last_made AS bigint) <= t.now + CAST(:skew AS bigint)),
e AS MATERIALIZED (SELECT * FROM EACH(:items, id uuid, arguments text) u),
known AS (
    INSERT INTO execution (
        id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, created_at, run_at,
        parent, replay_of, tags, trace)
    SELECT e.id, :namespace, :app, :job, r.version, :actor, :queue, r.lane, :priority, e.arguments, r.now, r.now,
           :parent, :replay_of, :tags, :trace
    FROM e, r),
placed AS (
    INSERT INTO ready (lane, rank, id, fence, attempts, crashes)
    SELECT r.lane, r.rank, e.id, 0, 0, 0 FROM e, r)
SELECT lane, rank FROM r

-- name: insert_scheduled
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes)
SELECT id, :lane, :priority, :run_at, 0, 0, 0 FROM EACH(:items, id uuid, arguments text) e

-- name: insert_expiries
INSERT INTO expiry (deadline, id) SELECT :deadline, id FROM EACH(:items, id uuid, arguments text) e

-- name: lock_keys @sqlite
-- One writer at a time: there is nothing to wait for.
SELECT 1, 'read committed'

-- name: lock_keys @postgres
-- Until the commit, one caller at a time for each key, in an order that is the same for all of them. Whoever has too
-- many keys has the whole job, which the others share.
SELECT min(CASE WHEN CAST(:waits AS boolean) AND is_shared THEN (pg_advisory_xact_lock_shared(h)::text IS NOT NULL)::int
                WHEN CAST(:waits AS boolean) THEN (pg_advisory_xact_lock(h)::text IS NOT NULL)::int
                WHEN is_shared THEN pg_try_advisory_xact_lock_shared(h)::int
                ELSE pg_try_advisory_xact_lock(h)::int END),
       current_setting('transaction_isolation')
FROM (SELECT DISTINCT hashtextextended(concat_ws(' ', SCHEMA(), key), 0) AS h, is_shared
      FROM EACH(:keys, key text, is_shared boolean) e ORDER BY h) ordered

-- name: key_holder
SELECT holder, arguments_hash, taken_at FROM unique_key
WHERE namespace = :namespace AND app = :app AND job = :job AND kind = :kind AND key = :key

-- name: take_key
INSERT INTO unique_key (namespace, app, job, kind, key, holder, arguments_hash, taken_at)
VALUES (:namespace, :app, :job, :kind, :key, :holder, :arguments_hash, :now)
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

-- name: push_back
UPDATE scheduled SET run_at = GREATEST(run_at, :run_at) WHERE id = :id

-- name: unready @sqlite
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes, first_start_at)
SELECT r.id, r.lane, x.priority, :run_at, r.fence, r.attempts, r.crashes, r.first_start_at
FROM ready r JOIN execution x ON x.id = r.id WHERE r.id = :id;
DELETE FROM ready WHERE id = :id

-- name: unready @postgres
WITH gone AS (
    DELETE FROM ready WHERE id = :id RETURNING id, lane, fence, attempts, crashes, first_start_at)
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes, first_start_at)
SELECT g.id, g.lane, x.priority, :run_at, g.fence, g.attempts, g.crashes, g.first_start_at
FROM gone g JOIN execution x ON x.id = g.id
