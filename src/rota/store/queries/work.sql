-- name: worker_may_claim
SELECT 1 FROM worker WHERE id = :worker AND stopped_at IS NULL AND lease_until > :now AND state = 'live'

-- name: lane_heads
SELECT l.id, CASE WHEN q.paused_at IS NULL
                  THEN (SELECT r.rank FROM ready r WHERE r.lane = l.id ORDER BY r.rank, r.id LIMIT 1) END AS head
FROM lane l CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE l.namespace = :namespace AND l.app = :app
  AND (:queues IS NULL OR l.queue IN (SELECT value FROM json_each(:queues)))

-- name: lane_head
SELECT lane, rank FROM ready WHERE lane = :lane ORDER BY rank, id LIMIT 1

-- name: claim @sqlite
-- SQLite has no data-changing CTE: the same first rows of the lane are read, copied to running and deleted.
SELECT r.id, r.lane, r.rank, r.fence + 1 AS fence, r.attempts, r.crashes,
       coalesce(r.first_start_at, :now) AS first_start_at, :now AS started_at,
       x.job, x.arguments, x.deadline, x.run_at, x.created_at
FROM ready r CROSS JOIN execution x ON x.id = r.id
WHERE r.lane = :lane AND r.rank <= :highest ORDER BY r.rank, r.id LIMIT :most;
INSERT INTO running (id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at)
SELECT id, lane, rank, :worker, fence + 1, attempts, crashes, coalesce(first_start_at, :now), :now
FROM ready WHERE lane = :lane AND rank <= :highest ORDER BY rank, id LIMIT :most;
DELETE FROM ready WHERE id IN (
    SELECT id FROM ready WHERE lane = :lane AND rank <= :highest ORDER BY rank, id LIMIT :most)

-- name: held
SELECT id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, cancel_at, cancel_reason
FROM running WHERE id IN (SELECT value FROM json_each(:ids))

-- name: held_by_worker
SELECT id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, cancel_at, cancel_reason
FROM running WHERE worker = :worker ORDER BY id LIMIT :most

-- name: cancels_of_worker
SELECT id FROM running WHERE worker = :worker AND cancel_at IS NOT NULL

-- name: unnamed_of_worker
SELECT id FROM running WHERE worker = :worker AND id NOT IN (SELECT value FROM json_each(:named)) LIMIT 1

-- name: count_held
SELECT count(*) FROM json_each(:rows) e CROSS JOIN running r ON r.id = e.value ->> 0 AND r.fence = e.value ->> 1

-- name: finish_successes
INSERT INTO finished (
    id, fence, final, status, reason, attempts, crashes, worker, started_at, result, finished_at)
SELECT r.id, r.fence, 1, :status, :reason, r.attempts + 1, r.crashes, r.worker, r.started_at, e.value ->> 2, :now
FROM json_each(:rows) e CROSS JOIN running r ON r.id = e.value ->> 0 AND r.fence = e.value ->> 1;
DELETE FROM running WHERE (id, fence) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:rows))

-- name: finish
INSERT INTO finished (
    id, fence, final, status, reason, attempts, crashes, worker, started_at, result, error, finished_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
       value ->> 9, value ->> 10, :now
FROM json_each(:ended);
DELETE FROM running WHERE (id, fence) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:ended))

-- name: return_ready
INSERT INTO ready (id, lane, rank, fence, attempts, crashes, first_start_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6 FROM json_each(:rows)

-- name: return_scheduled
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes, first_start_at, reason)
SELECT x.id, e.value ->> 1, x.priority, e.value ->> 2, e.value ->> 3, e.value ->> 4, e.value ->> 5, e.value ->> 6, e.value ->> 7
FROM json_each(:rows) e CROSS JOIN execution x ON x.id = e.value ->> 0

-- name: bury
INSERT INTO dead (id, namespace, app, job, queue, reason, failed_at)
SELECT x.id, x.namespace, x.app, x.job, x.queue, e.value ->> 1, :now
FROM json_each(:rows) e CROSS JOIN execution x ON x.id = e.value ->> 0
