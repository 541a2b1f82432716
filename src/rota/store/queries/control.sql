-- name: pending @sqlite
-- An open run is in `waiting`, too, but is not pending.
SELECT id, lane, fence, attempts, crashes, first_start_at, run, 'scheduled' AS place, run_at
FROM scheduled WHERE id AMONG(:ids, uuid)
UNION ALL
SELECT id, lane, fence, attempts, crashes, first_start_at, run, 'waiting', NULL FROM waiting w WHERE id AMONG(:ids, uuid)
  AND NOT EXISTS (SELECT 1 FROM run n WHERE n.id = w.id)
UNION ALL
SELECT id, lane, fence, attempts, crashes, first_start_at, run, 'queued', NULL FROM ready WHERE id AMONG(:ids, uuid)

-- name: pending @postgres
-- Locks the rows, because a claim may be moving them. A row that moves to another table meanwhile is not returned.
WITH s AS (SELECT id, lane, fence, attempts, crashes, first_start_at, run, 'scheduled' AS place, run_at FROM scheduled
           WHERE id AMONG(:ids, uuid) ORDER BY id FOR UPDATE),
     w AS (SELECT id, lane, fence, attempts, crashes, first_start_at, run, 'waiting', CAST(NULL AS bigint) FROM waiting w
           WHERE id AMONG(:ids, uuid) AND NOT EXISTS (SELECT 1 FROM run n WHERE n.id = w.id) ORDER BY id FOR UPDATE),
     r AS (SELECT id, lane, fence, attempts, crashes, first_start_at, run, 'queued', CAST(NULL AS bigint) FROM ready
           WHERE id AMONG(:ids, uuid) ORDER BY id FOR UPDATE)
SELECT * FROM s UNION ALL SELECT * FROM w UNION ALL SELECT * FROM r

-- name: end_pending
-- A finished execution may still have a stale row in one of these tables: only that row is deleted.
INSERT INTO finished (id, fence, final, status, reason, attempts, crashes, finished_at)
SELECT id, fence, 1, :status, :reason, attempts, crashes, :now
FROM EACH(:rows, id uuid, fence bigint, attempts int, crashes int) e
WHERE (SELECT count(*) FROM finished f WHERE f.id = e.id AND f.fence = e.fence AND f.final = 1) = 0;
DELETE FROM scheduled WHERE id AMONG(:scheduled, uuid);
DELETE FROM blocker WHERE execution AMONG(:waiting, uuid);
DELETE FROM subscription WHERE execution AMONG(:waiting, uuid);
DELETE FROM waiting WHERE id AMONG(:waiting, uuid);
DELETE FROM ready WHERE id AMONG(:queued, uuid)

-- name: ask_cancel
UPDATE running SET cancel_at = :now, cancel_reason = :reason WHERE id AMONG(:ids, uuid) AND cancel_at IS NULL

-- name: current_statuses
SELECT id, status, worker, cancel_at, deadline FROM state WHERE id AMONG(:ids, uuid) AND namespace = :namespace

-- name: dead_of
SELECT id FROM dead WHERE namespace = :namespace AND id AMONG(:ids, uuid)

-- name: dead_to_replay
SELECT d.id, x.app, x.job, x.queue, x.priority, x.arguments, x.tags, x.headers, x.overrides
FROM dead d JOIN execution x ON x.id = d.id
WHERE d.namespace = :namespace AND d.id AMONG(:ids, uuid) ORDER BY d.id FOR UPDATE OF d

-- name: replayable
SELECT x.id, x.app, x.job, x.queue, x.priority, x.arguments, x.tags, x.headers, x.overrides FROM execution x
WHERE x.id = :id AND x.namespace = :namespace

-- name: mark_replayed
UPDATE finished SET replayed_as = e.successor FROM EACH(:rows, id uuid, successor uuid) e
WHERE finished.id = e.id AND finished.final = 1

-- name: undead
DELETE FROM dead WHERE namespace = :namespace AND id AMONG(:ids, uuid)

-- name: children_of
SELECT id FROM execution WHERE parent AMONG(:ids, uuid) AND namespace = :namespace LIMIT :most

-- name: pending_facts
-- The caller has locked the row in `scheduled`, `waiting` or `ready`.
SELECT x.app, x.job, x.queue, x.lane, x.priority, x.run_at, x.deadline, l.requirements, q.policy,
       coalesce(r.rank, w.rank) AS rank, l.runs
FROM execution x JOIN lane l ON l.id = x.lane JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
LEFT JOIN ready r ON r.id = x.id LEFT JOIN waiting w ON w.id = x.id
WHERE x.id = :id AND x.namespace = :namespace

-- name: lane_in_queue
SELECT l.id, q.policy, q.max_depth FROM lane l JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE l.namespace = :namespace AND l.app = :app AND l.job = :job AND l.queue = :queue AND l.requirements = :requirements

-- name: move_in_line
UPDATE execution SET priority = :priority, queue = :queue, lane = :lane, run_at = :run_at WHERE id = :id;
UPDATE scheduled SET lane = :lane, priority = :priority, run_at = :due_at WHERE id = :id;
UPDATE ready SET lane = :lane, rank = :rank WHERE id = :id;
UPDATE waiting SET lane = :lane, rank = :rank WHERE id = :id;
UPDATE blocker SET rank = :rank WHERE execution = :id
