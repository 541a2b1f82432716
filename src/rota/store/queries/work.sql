-- name: claim_heads
-- Whether the worker may claim, and for each lane of its queues the lowest rank behind the claimer's mark in it; null
-- if there is none, or the queue is paused. One row without a lane if there are no lanes.
SELECT w.state = 'live' AND w.lease_until > :now AS may_claim, l.id, CASE WHEN q.paused_at IS NULL THEN (
    SELECT r.rank FROM ready r WHERE r.lane = l.id AND (r.rank, r.id) > (coalesce(m.rank, :no_rank), coalesce(m.id, :no_id))
    ORDER BY r.rank, r.id LIMIT 1) END AS head, l.requirements, w.offers
FROM worker w
LEFT JOIN lane l ON l.namespace = :namespace AND l.app = :app AND (:all_queues OR l.queue AMONG(:queues, text))
LEFT JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
LEFT JOIN EACH(:marks, lane bigint, rank bigint, id uuid) m ON m.lane = l.id
WHERE w.id = :worker AND w.stopped_at IS NULL FOR KEY SHARE OF w

-- name: held_in_lanes
SELECT l.requirements, count(*) FROM running r CROSS JOIN lane l ON l.id = r.lane
WHERE r.worker = :worker AND l.requirements <> '' GROUP BY l.requirements

-- name: has_ready
SELECT 1 FROM lane l CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE l.namespace = :namespace AND l.app = :app AND (:all_queues OR l.queue AMONG(:queues, text))
  AND q.paused_at IS NULL AND EXISTS (SELECT 1 FROM ready r WHERE r.lane = l.id)
LIMIT 1

-- name: lane_head
SELECT lane, rank FROM ready WHERE lane = :lane AND (rank, id) > (:rank, :id) ORDER BY rank, id LIMIT 1

-- name: claim @sqlite
-- SQLite has no data-changing CTE: the first rows are read, then copied to running and deleted.
SELECT id, lane, rank, fence + 1 AS fence, attempts, crashes,
       coalesce(first_start_at, :now) AS first_start_at, :now AS started_at
FROM ready
WHERE lane = :lane AND (rank, id) > (:rank, :id) AND rank <= :highest ORDER BY rank, id LIMIT :most;
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at)
SELECT id, lane, rank, :worker, fence + 1, attempts, crashes, coalesce(first_start_at, :now), :now
FROM ready WHERE lane = :lane AND (rank, id) > (:rank, :id) AND rank <= :highest ORDER BY rank, id LIMIT :most;
DELETE FROM ready WHERE id IN (
    SELECT id FROM ready WHERE lane = :lane AND (rank, id) > (:rank, :id) AND rank <= :highest
    ORDER BY rank, id LIMIT :most)

-- name: claim @postgres
-- The start is the time now, not when the transaction began: what was enqueued since then may be among the rows.
WITH t AS MATERIALIZED (SELECT CAST(:clock AS bigint) AS now),
taken AS (
    DELETE FROM ready WHERE ctid = ANY(ARRAY(
        SELECT r.ctid FROM ready r
        WHERE r.lane = :lane AND (r.rank, r.id) > (:rank, :id) AND r.rank <= :highest
        ORDER BY r.rank, r.id LIMIT :most FOR UPDATE SKIP LOCKED))
    RETURNING id, lane, rank, fence, attempts, crashes, first_start_at)
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at)
SELECT id, lane, rank, :worker, fence + 1, attempts, crashes, coalesce(first_start_at, t.now), t.now FROM taken, t
RETURNING id, lane, rank, fence, attempts, crashes, first_start_at, started_at

-- name: claimed
-- By itself and with bounds, so that only the partitions are opened that may have them: a join would open them all.
SELECT id, job, arguments, deadline, run_at, created_at, tick, catch_up FROM execution
WHERE id AMONG(:ids, uuid) AND id >= :lowest AND id <= :highest

-- name: unclaim
-- In the transaction of the claim: nobody has seen the fence that is taken back.
INSERT INTO ready (id, lane, rank, fence, attempts, crashes, first_start_at)
SELECT id, lane, rank, fence - 1, attempts, crashes, CASE WHEN first_start_at < started_at THEN first_start_at END
FROM running WHERE id AMONG(:ids, uuid);
DELETE FROM running WHERE id AMONG(:ids, uuid)

-- name: held
SELECT id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, cancel_at, cancel_reason
FROM running WHERE id AMONG(:ids, uuid) ORDER BY id FOR UPDATE

-- name: held_by_worker
SELECT id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, cancel_at, cancel_reason
FROM running WHERE worker = :worker ORDER BY id LIMIT :most FOR UPDATE

-- name: attempts_of_worker
SELECT id, fence FROM running WHERE worker = :worker ORDER BY id LIMIT :most

-- name: cancels_of_worker
SELECT id FROM running WHERE worker = :worker AND cancel_at IS NOT NULL

-- name: unnamed_of_worker
SELECT id FROM running WHERE worker = :worker AND NOT id AMONG(:named, uuid) LIMIT 1

-- name: finish_successes @sqlite
-- Returns the ids of the reports that are stale.
SELECT e.id FROM EACH(:rows, id uuid, fence bigint, result text) e
WHERE NOT EXISTS (SELECT 1 FROM running r WHERE r.id = e.id AND r.fence = e.fence);
INSERT INTO finished (
    id, fence, final, status, reason, attempts, crashes, worker, started_at, result, finished_at)
SELECT r.id, r.fence, 1, :status, :reason, r.attempts + 1, r.crashes, r.worker, r.started_at, e.result, :now
FROM EACH(:rows, id uuid, fence bigint, result text) e CROSS JOIN running r ON r.id = e.id AND r.fence = e.fence;
DELETE FROM running WHERE (id, fence) IN (SELECT id, fence FROM EACH(:rows, id uuid, fence bigint, result text) e)

-- name: finish_successes @postgres
WITH e AS MATERIALIZED (SELECT * FROM EACH(:rows, id uuid, fence bigint, result text) t),
gone AS (
    DELETE FROM running r USING e WHERE r.id = e.id AND r.fence = e.fence
    RETURNING r.id, r.fence, r.attempts, r.crashes, r.worker, r.started_at, e.result),
ended AS (
    INSERT INTO finished (
        id, fence, final, status, reason, attempts, crashes, worker, started_at, result, finished_at)
    SELECT id, fence, 1, :status, :reason, attempts + 1, crashes, worker, started_at, result, :now FROM gone)
SELECT id FROM e WHERE id NOT IN (SELECT id FROM gone)

-- name: finish
-- What has ended already has only its place to lose.
INSERT INTO finished (
    id, fence, final, status, reason, attempts, crashes, worker, started_at, result, error, usage, finished_at)
SELECT id, fence, final, status, reason, attempts, crashes, worker, started_at, result, error, usage, :now
FROM EACH(:ended, id uuid, fence bigint, final int, status text, reason text, attempts int, crashes int, worker bigint, started_at bigint, result text, error text, usage text) e
WHERE (SELECT count(*) FROM finished f WHERE f.id = e.id AND f.fence = e.fence AND f.final = 1) = 0;
DELETE FROM running WHERE id AMONG(:ids, uuid)

-- name: return_ready
INSERT INTO ready (id, lane, rank, fence, attempts, crashes, first_start_at)
SELECT id, lane, rank, fence, attempts, crashes, first_start_at
FROM EACH(:rows, id uuid, lane int, rank bigint, fence bigint, attempts int, crashes int, first_start_at bigint) e

-- name: return_scheduled
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes, first_start_at, reason)
SELECT x.id, e.lane, x.priority, e.run_at, e.fence, e.attempts, e.crashes, e.first_start_at, e.reason
FROM EACH(:rows, id uuid, lane int, run_at bigint, fence bigint, attempts int, crashes int, first_start_at bigint, reason text) e
CROSS JOIN execution x ON x.id = e.id

-- name: bury
INSERT INTO dead (id, namespace, app, job, queue, reason, failed_at)
SELECT x.id, x.namespace, x.app, x.job, x.queue, e.reason, :now
FROM EACH(:rows, id uuid, reason text) e CROSS JOIN execution x ON x.id = e.id WHERE true ON CONFLICT DO NOTHING
