-- name: may_claim
SELECT state = 'live' AND lease_until > :now FROM worker WHERE id = :worker AND stopped_at IS NULL

-- name: lane_heads
SELECT l.id, CASE WHEN q.paused_at IS NULL
                  THEN (SELECT r.rank FROM ready r WHERE r.lane = l.id ORDER BY r.rank, r.id LIMIT 1) END AS head
FROM lane l CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE l.namespace = :namespace AND l.app = :app
  AND (:all_queues OR l.queue AMONG(:queues, text))

-- name: lane_head
SELECT lane, rank FROM ready WHERE lane = :lane ORDER BY rank, id LIMIT 1

-- name: claimable
SELECT r.id, r.lane, r.rank, r.fence + 1 AS fence, r.attempts, r.crashes,
       coalesce(r.first_start_at, :now) AS first_start_at, :now AS started_at,
       x.job, x.arguments, x.deadline, x.run_at, x.created_at
FROM ready r CROSS JOIN execution x ON x.id = r.id
WHERE r.lane = :lane AND r.rank <= :highest ORDER BY r.rank, r.id LIMIT :most

-- name: claim @sqlite
-- SQLite has no data-changing CTE: the first rows of the lane, just read, are copied to running and deleted.
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at)
SELECT id, lane, rank, :worker, fence + 1, attempts, crashes, coalesce(first_start_at, :now), :now
FROM ready WHERE lane = :lane AND rank <= :highest ORDER BY rank, id LIMIT :most;
DELETE FROM ready WHERE id IN (
    SELECT id FROM ready WHERE lane = :lane AND rank <= :highest ORDER BY rank, id LIMIT :most)

-- name: held
SELECT id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, cancel_at, cancel_reason
FROM running WHERE id AMONG(:ids, uuid)

-- name: held_by_worker
SELECT id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, cancel_at, cancel_reason
FROM running WHERE worker = :worker ORDER BY id LIMIT :most

-- name: cancels_of_worker
SELECT id FROM running WHERE worker = :worker AND cancel_at IS NOT NULL

-- name: unnamed_of_worker
SELECT id FROM running WHERE worker = :worker AND NOT id AMONG(:named, uuid) LIMIT 1

-- name: count_held
SELECT count(*) FROM EACH(:rows, id uuid, fence bigint, result text) e
CROSS JOIN running r ON r.id = e.id AND r.fence = e.fence

-- name: finish_successes
INSERT INTO finished (
    id, fence, final, status, reason, attempts, crashes, worker, started_at, result, finished_at)
SELECT r.id, r.fence, 1, :status, :reason, r.attempts + 1, r.crashes, r.worker, r.started_at, e.result, :now
FROM EACH(:rows, id uuid, fence bigint, result text) e CROSS JOIN running r ON r.id = e.id AND r.fence = e.fence;
DELETE FROM running WHERE (id, fence) IN (SELECT id, fence FROM EACH(:rows, id uuid, fence bigint, result text) e)

-- name: finish
INSERT INTO finished (
    id, fence, final, status, reason, attempts, crashes, worker, started_at, result, error, finished_at)
SELECT id, fence, final, status, reason, attempts, crashes, worker, started_at, result, error, :now
FROM EACH(:ended, id uuid, fence bigint, final int, status text, reason text, attempts int, crashes int, worker bigint, started_at bigint, result text, error text) e;
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
FROM EACH(:rows, id uuid, reason text) e CROSS JOIN execution x ON x.id = e.id
