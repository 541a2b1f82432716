-- name: served_lanes
SELECT l.id FROM lane l
WHERE l.namespace AMONG(:namespaces, text) AND (:all_apps OR l.app AMONG(:apps, text))
  AND (coalesce(l.runs, l.job) AMONG(:jobs, text) OR l.requirements = :workflow) AND (:all_queues OR l.queue AMONG(:queues, text))
ORDER BY l.id

-- name: claim_heads
-- Whether the worker may claim, and for each lane the first ranks behind the claimer's watermark, as a JSON list; null
-- if there are none or the queue is paused. One row without a lane if there are no lanes.
WITH m AS MATERIALIZED (SELECT * FROM EACH(:lanes, lane int, rank bigint, id uuid) e)
SELECT LIVE(w) AS may_claim, w.offers, l.id, l.namespace, l.app, l.requirements,
       CASE WHEN q.paused_at IS NULL THEN (
           SELECT CAST(LISTING(h.rank) AS text) || '' FROM (
               SELECT r.rank FROM ready r WHERE r.lane = m.lane AND (r.rank, r.id) > (m.rank, m.id)
               ORDER BY r.rank, r.id LIMIT :depth) h) END AS ranks
FROM worker w
LEFT JOIN m ON true
LEFT JOIN lane l ON l.id = m.lane
LEFT JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE w.id = :worker AND w.stopped_at IS NULL FOR KEY SHARE OF w

-- name: lane_names
SELECT id, namespace, app, job FROM lane WHERE id AMONG(:lanes, int)

-- name: lane_ranks
-- For each lane the first ranks behind a position, as a JSON list.
WITH m AS MATERIALIZED (SELECT * FROM EACH(:lanes, lane int, rank bigint, id uuid) e)
SELECT m.lane, (
    SELECT CAST(LISTING(h.rank) AS text) || '' FROM (
        SELECT r.rank FROM ready r WHERE r.lane = m.lane AND (r.rank, r.id) > (m.rank, m.id)
        ORDER BY r.rank, r.id LIMIT :depth) h) AS ranks
FROM m

-- name: held_in_lanes
SELECT l.requirements, count(*) FROM running r CROSS JOIN lane l ON l.id = r.lane
WHERE r.worker = :worker AND l.requirements <> '' GROUP BY l.requirements

-- name: has_ready
SELECT 1 FROM lane l CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE l.namespace AMONG(:namespaces, text) AND (:all_apps OR l.app AMONG(:apps, text))
  AND (coalesce(l.runs, l.job) AMONG(:jobs, text) OR l.requirements = :workflow) AND (:all_queues OR l.queue AMONG(:queues, text))
  AND q.paused_at IS NULL AND EXISTS (SELECT 1 FROM ready r WHERE r.lane = l.id)
LIMIT 1

-- name: claim @sqlite
-- Lane by lane, after a position and up to the highest rank. SQLite has no data-changing CTE: the rows are read, then
-- copied to running, then deleted. Both joins read the same rows: lanes in the order of the list, rows of a lane in the
-- order of the primary key. RETURNING would cost a step for each row.
WITH m AS MATERIALIZED (SELECT * FROM EACH(:lanes, lane int, rank bigint, id uuid, highest bigint) e)
SELECT r.id, r.lane, r.rank, r.fence + 1 AS fence, r.attempts, r.crashes,
       coalesce(r.first_start_at, :now) AS first_start_at, :now AS started_at, r.run
FROM m
CROSS JOIN ready r ON r.lane = m.lane AND (r.rank, r.id) > (m.rank, m.id) AND r.rank <= m.highest LIMIT :most;
WITH m AS MATERIALIZED (SELECT * FROM EACH(:lanes, lane int, rank bigint, id uuid, highest bigint) e)
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, run)
SELECT r.id, r.lane, r.rank, :worker, r.fence + 1, r.attempts, r.crashes, coalesce(r.first_start_at, :now), :now, r.run
FROM m
CROSS JOIN ready r ON r.lane = m.lane AND (r.rank, r.id) > (m.rank, m.id) AND r.rank <= m.highest LIMIT :most;
DELETE FROM ready WHERE id AMONG(:returned, uuid)

-- name: claim @postgres
-- Lane by lane, from behind a position up to the highest rank; no more rows are locked than are taken. The start is the
-- time now, not the start of the transaction: some rows may have been enqueued since then.
WITH t AS MATERIALIZED (SELECT CAST(:clock AS bigint) AS now),
taken AS (
    DELETE FROM ready WHERE ctid = ANY(ARRAY(
        SELECT f.place FROM EACH(:lanes, lane int, rank bigint, id uuid, highest bigint) m
        JOIN LATERAL (
            SELECT r.ctid AS place FROM ready r
            WHERE r.lane = m.lane AND (r.rank, r.id) > (m.rank, m.id) AND r.rank <= m.highest
            ORDER BY r.rank, r.id LIMIT :most FOR UPDATE SKIP LOCKED) f ON true
        LIMIT :most))
    RETURNING id, lane, rank, fence, attempts, crashes, first_start_at, run)
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, run)
SELECT id, lane, rank, :worker, fence + 1, attempts, crashes, coalesce(first_start_at, t.now), t.now, run FROM taken, t
RETURNING id, lane, rank, fence, attempts, crashes, first_start_at, started_at, run

-- name: claim_at_once @sqlite
-- `claim_heads` and `claim` in one: at most `depth` rows from each lane, up to the highest rank. Skips lanes with
-- requirements and paused queues; takes nothing if the worker may not claim or has offers of its own. If `depth` is not
-- below `most`, LIMIT alone bounds the rows. As in `claim`, both joins read the same rows.
WITH m AS MATERIALIZED (
    SELECT e.lane, e.rank, e.id, min(:highest, coalesce(CASE WHEN :depth < :most THEN (
        SELECT r.rank FROM ready r WHERE r.lane = e.lane AND (r.rank, r.id) > (e.rank, e.id)
        ORDER BY r.rank, r.id LIMIT 1 OFFSET :depth - 1) END, :highest)) AS highest
    FROM worker w CROSS JOIN EACH(:lanes, lane int, rank bigint, id uuid) e
    CROSS JOIN lane l ON l.id = e.lane AND l.requirements = ''
    CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue AND q.paused_at IS NULL
    WHERE w.id = :worker AND LIVE(w) AND w.offers = :offers)
SELECT r.id, r.lane, r.rank, r.fence + 1 AS fence, r.attempts, r.crashes,
       coalesce(r.first_start_at, :now) AS first_start_at, :now AS started_at, r.run
FROM m
CROSS JOIN ready r ON r.lane = m.lane AND (r.rank, r.id) > (m.rank, m.id) AND r.rank <= m.highest LIMIT :most;
WITH m AS MATERIALIZED (
    SELECT e.lane, e.rank, e.id, min(:highest, coalesce(CASE WHEN :depth < :most THEN (
        SELECT r.rank FROM ready r WHERE r.lane = e.lane AND (r.rank, r.id) > (e.rank, e.id)
        ORDER BY r.rank, r.id LIMIT 1 OFFSET :depth - 1) END, :highest)) AS highest
    FROM worker w CROSS JOIN EACH(:lanes, lane int, rank bigint, id uuid) e
    CROSS JOIN lane l ON l.id = e.lane AND l.requirements = ''
    CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue AND q.paused_at IS NULL
    WHERE w.id = :worker AND LIVE(w) AND w.offers = :offers)
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, run)
SELECT r.id, r.lane, r.rank, :worker, r.fence + 1, r.attempts, r.crashes, coalesce(r.first_start_at, :now), :now, r.run
FROM m
CROSS JOIN ready r ON r.lane = m.lane AND (r.rank, r.id) > (m.rank, m.id) AND r.rank <= m.highest LIMIT :most;
DELETE FROM ready WHERE id AMONG(:returned, uuid)

-- name: claim_at_once @postgres
WITH t AS MATERIALIZED (SELECT CAST(:clock AS bigint) AS now),
w AS MATERIALIZED (
    SELECT w.id FROM worker w WHERE w.id = :worker AND LIVE(w) AND w.offers = :offers
    FOR KEY SHARE),
taken AS (
    DELETE FROM ready WHERE ctid = ANY(ARRAY(
        SELECT f.place FROM w, EACH(:lanes, lane int, rank bigint, id uuid) m
        JOIN lane l ON l.id = m.lane AND l.requirements = ''
        JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue AND q.paused_at IS NULL
        JOIN LATERAL (
            SELECT r.ctid AS place FROM ready r
            WHERE r.lane = m.lane AND (r.rank, r.id) > (m.rank, m.id) AND r.rank <= :highest
            ORDER BY r.rank, r.id LIMIT :depth FOR UPDATE SKIP LOCKED) f ON true
        LIMIT :most))
    RETURNING id, lane, rank, fence, attempts, crashes, first_start_at, run)
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, run)
SELECT id, lane, rank, :worker, fence + 1, attempts, crashes, coalesce(first_start_at, t.now), t.now, run FROM taken, t
RETURNING id, lane, rank, fence, attempts, crashes, first_start_at, started_at, run

-- name: claim_these @sqlite
-- The rows with these ids, for a lane gate that chooses rows itself (`Group.choose`).
SELECT id, lane, rank, fence + 1 AS fence, attempts, crashes,
       coalesce(first_start_at, :now) AS first_start_at, :now AS started_at, run
FROM ready WHERE id AMONG(:ids, uuid);
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, run)
SELECT id, lane, rank, :worker, fence + 1, attempts, crashes, coalesce(first_start_at, :now), :now, run
FROM ready WHERE id AMONG(:ids, uuid);
DELETE FROM ready WHERE id AMONG(:ids, uuid)

-- name: claim_these @postgres
WITH t AS MATERIALIZED (SELECT CAST(:clock AS bigint) AS now),
taken AS (
    DELETE FROM ready WHERE ctid = ANY(ARRAY(
        SELECT r.ctid FROM ready r WHERE r.id AMONG(:ids, uuid) ORDER BY r.rank, r.id FOR UPDATE SKIP LOCKED))
    RETURNING id, lane, rank, fence, attempts, crashes, first_start_at, run)
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, run)
SELECT id, lane, rank, :worker, fence + 1, attempts, crashes, coalesce(first_start_at, t.now), t.now, run FROM taken, t
RETURNING id, lane, rank, fence, attempts, crashes, first_start_at, started_at, run

-- name: claimed
-- Without a join and with bounds, so that PostgreSQL opens only the partitions that may contain the ids.
SELECT id, job, arguments, deadline, run_at, created_at, tick, catch_up, headers, overrides, inputs,
       upstream, step, map_index, event
FROM execution
WHERE id AMONG(:ids, uuid) AND id >= :lowest AND id <= :highest

-- name: unclaim
-- In the transaction of the claim: no other transaction has seen the new fence, so it is taken back.
INSERT INTO ready (id, lane, rank, fence, attempts, crashes, run, first_start_at)
SELECT id, lane, rank, fence - 1, attempts, crashes, run,
       CASE WHEN first_start_at < started_at THEN first_start_at END
FROM running WHERE id AMONG(:ids, uuid);
DELETE FROM running WHERE id AMONG(:ids, uuid)

-- name: rules_of
-- An execution of a job that the API has defined, or that was deleted, has the rules of its own version; one of code
-- those of the version in force.
-- With bounds, so that PostgreSQL opens only the partitions that may contain the ids.
SELECT e.id, v.definition, e.overrides FROM execution e
LEFT JOIN job j ON j.namespace = e.namespace AND j.app = e.app AND j.name = e.job AND j.origin <> 'api'
    AND e.job_version > j.base
CROSS JOIN job_version v ON v.namespace = e.namespace AND v.app = e.app AND v.job = e.job
    AND v.number = coalesce(j.version, e.job_version)
WHERE e.id AMONG(:ids, uuid) AND e.id >= :lowest AND e.id <= :highest

-- name: rules_at_acceptance
-- The rules of the versions that these executions were accepted with.
SELECT e.id, v.definition, e.overrides FROM execution e
CROSS JOIN job_version v ON v.namespace = e.namespace AND v.app = e.app AND v.job = e.job AND v.number = e.job_version
WHERE e.id AMONG(:ids, uuid) AND e.id >= :lowest AND e.id <= :highest

-- name: held
SELECT id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, run, cancel_at, cancel_reason
FROM running WHERE id AMONG(:ids, uuid) ORDER BY id FOR UPDATE

-- name: held_by_worker
SELECT id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, run, cancel_at, cancel_reason
FROM running WHERE worker = :worker ORDER BY id LIMIT :most FOR UPDATE

-- name: attempts_of_worker
SELECT id, fence FROM running WHERE worker = :worker ORDER BY id LIMIT :most

-- name: cancels_of_worker
SELECT id FROM running WHERE worker = :worker AND cancel_at IS NOT NULL

-- name: unnamed_of_worker
SELECT id FROM running WHERE worker = :worker AND NOT id AMONG(:named, uuid) LIMIT 1

-- name: finish_successes @sqlite
-- One row of JSON texts: the ids of stale reports, the run of each step, and the lanes of the executions that have
-- ended. SQLite reads an object several times faster than a list of rows.
SELECT json_group_array(f.key) FILTER (WHERE r.id IS NULL) || '' AS stale,
       json_group_object(r.id, r.run) FILTER (WHERE r.run IS NOT NULL) || '' AS runs,
       json_group_array(r.lane) FILTER (WHERE r.id IS NOT NULL) || '' AS lanes
FROM json_each(:fences) f
LEFT JOIN running r ON r.id = f.key AND r.fence = f.value AND r.worker = coalesce(:worker, r.worker);
INSERT INTO finished (
    id, fence, final, status, reason, attempts, crashes, worker, started_at, result, finished_at)
SELECT r.id, r.fence, 1, :status, :reason, r.attempts + 1, r.crashes, r.worker, r.started_at, e.value, :now
FROM json_each(:results) e CROSS JOIN running r ON r.id = e.key WHERE NOT r.id IN (SELECT value FROM json_each(:returned ->> 0));
DELETE FROM running WHERE id AMONG(:ids, uuid) AND NOT id IN (SELECT value FROM json_each(:returned ->> 0))

-- name: finish_successes @postgres
-- Hash joins are off (postgres/link.py), and the planner may believe that `running` is nearly empty. Still no report is
-- compared with each row: OFFSET makes the planner look up each report by its id, and `(… IN …) IS TRUE` and NOT IN make
-- hash tables of the deleted rows. The DELETE need not check fence and worker again, because no UPDATE changes them.
-- The end has the time of the statement, so that BEGIN can travel with it.
WITH t AS MATERIALIZED (SELECT CAST(:clock AS bigint) AS now),
e AS MATERIALIZED (
    SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:fences AS bigint[]), CAST(:results AS text[]))
        AS u (id, fence, result)),
found AS MATERIALIZED (
    SELECT r.id, r.fence, r.attempts, r.crashes, r.worker, r.started_at, e.result FROM e CROSS JOIN LATERAL (
        SELECT * FROM running r
        WHERE r.id = e.id AND r.fence = e.fence AND r.worker = coalesce(CAST(:worker AS bigint), r.worker) OFFSET 0) r ON true),
gone AS (DELETE FROM running WHERE id = ANY(ARRAY(SELECT id FROM found)) RETURNING id, run, lane),
ended AS (
    INSERT INTO finished (
        id, fence, final, status, reason, attempts, crashes, worker, started_at, result, finished_at)
    SELECT id, fence, 1, :status, :reason, attempts + 1, crashes, worker, started_at, result, t.now
    FROM found, t WHERE (id IN (SELECT id FROM gone)) IS TRUE)
SELECT CAST((SELECT json_agg(id) FROM e WHERE id NOT IN (SELECT id FROM gone)) AS text) AS stale,
       CAST((SELECT json_object_agg(id, run) FROM gone WHERE run IS NOT NULL) AS text) AS runs,
       CAST((SELECT json_agg(lane) FROM gone) AS text) AS lanes

-- name: finish
-- A finished execution may still have a stale `running` row: only that row is deleted.
INSERT INTO finished (
    id, fence, final, status, reason, attempts, crashes, worker, started_at, result, error, usage, finished_at)
SELECT id, fence, final, status, reason, attempts, crashes, worker, started_at, result, error, usage, :now
FROM EACH(:ended, id uuid, fence bigint, final int, status text, reason text, attempts int, crashes int, worker bigint, started_at bigint, result text, error text, usage text) e
WHERE (SELECT count(*) FROM finished f WHERE f.id = e.id AND f.fence = e.fence AND f.final = 1) = 0;
DELETE FROM running WHERE id AMONG(:ids, uuid)

-- name: return_ready
INSERT INTO ready (id, lane, rank, fence, attempts, crashes, first_start_at, run)
SELECT id, lane, rank, fence, attempts, crashes, first_start_at, run
FROM EACH(:rows, id uuid, lane int, rank bigint, fence bigint, attempts int, crashes int, first_start_at bigint, run uuid) e

-- name: return_scheduled
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes, first_start_at, run, reason)
SELECT x.id, e.lane, x.priority, e.run_at, e.fence, e.attempts, e.crashes, e.first_start_at, x.run, e.reason
FROM EACH(:rows, id uuid, lane int, run_at bigint, fence bigint, attempts int, crashes int, first_start_at bigint, reason text) e
CROSS JOIN execution x ON x.id = e.id

-- name: bury
INSERT INTO dead (id, namespace, app, job, queue, reason, fingerprint, failed_at)
SELECT x.id, x.namespace, x.app, x.job, x.queue, e.reason, e.fingerprint, :now
FROM EACH(:rows, id uuid, reason text, fingerprint text) e CROSS JOIN execution x ON x.id = e.id WHERE true ON CONFLICT DO NOTHING

-- name: failures
SELECT id, job, reason FROM dead WHERE id AMONG(:ids, uuid) ORDER BY id
