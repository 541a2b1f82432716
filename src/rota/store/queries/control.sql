-- name: pending
SELECT id, lane, fence, attempts, crashes, first_start_at FROM scheduled WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id, lane, fence, attempts, crashes, first_start_at FROM waiting WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id, lane, fence, attempts, crashes, first_start_at FROM ready WHERE id IN (SELECT value FROM json_each(:ids))

-- name: end_pending
INSERT INTO finished (id, fence, final, status, reason, attempts, crashes, finished_at)
SELECT value ->> 0, value ->> 1, 1, :status, :reason, value ->> 2, value ->> 3, :now FROM json_each(:rows);
DELETE FROM scheduled WHERE id IN (SELECT value ->> 0 FROM json_each(:rows));
DELETE FROM waiting WHERE id IN (SELECT value ->> 0 FROM json_each(:rows));
DELETE FROM ready WHERE id IN (SELECT value ->> 0 FROM json_each(:rows))

-- name: ask_cancel
UPDATE running SET cancel_at = :now, cancel_reason = :reason WHERE id = :id AND cancel_at IS NULL

-- name: status_of
SELECT status, worker FROM state WHERE id = :id AND namespace = :namespace

-- name: dead_of
SELECT d.id, x.app, x.job, x.queue, x.priority, x.arguments, x.tags
FROM dead d JOIN execution x ON x.id = d.id
WHERE d.namespace = :namespace AND d.id IN (SELECT value FROM json_each(:ids)) ORDER BY d.id

-- name: replayable
SELECT x.id, x.app, x.job, x.queue, x.priority, x.arguments, x.tags FROM execution x
WHERE x.id = :id AND x.namespace = :namespace

-- name: undead
DELETE FROM dead WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids))
