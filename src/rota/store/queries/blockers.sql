-- name: block
-- The caller holds the rows. Those that it has claimed in this transaction move to `waiting`: no other transaction has
-- seen their new fence, so it is taken back. The others are in `waiting` already and get further blockers.
INSERT INTO waiting (id, lane, rank, since_at, fence, attempts, crashes, run, first_start_at)
SELECT id, lane, rank, :now, fence - 1, attempts, crashes, run,
       CASE WHEN first_start_at < started_at THEN first_start_at END
FROM running WHERE id AMONG(:ids, uuid);
DELETE FROM running WHERE id AMONG(:ids, uuid);
INSERT INTO blocker (execution, kind, key, rank)
SELECT w.id, e.kind, e.key, w.rank FROM EACH(:blockers, execution uuid, kind text, key text) e
CROSS JOIN waiting w ON w.id = e.execution WHERE true ON CONFLICT DO NOTHING

-- name: first_blocked
-- Skips rows that another transaction has locked. If it leaves them here, a later batch releases them.
SELECT w.id, w.lane, w.rank FROM blocker b CROSS JOIN waiting w ON w.id = b.execution
WHERE b.kind = :kind AND b.key = :key ORDER BY b.rank, b.execution LIMIT :most FOR UPDATE OF w SKIP LOCKED

-- name: release
-- The caller holds the waiting rows, so no other transaction changes their blockers meanwhile.
DELETE FROM blocker WHERE kind = :kind AND key = :key AND execution AMONG(:ids, uuid);
INSERT INTO ready (id, lane, rank, fence, attempts, crashes, first_start_at, run)
SELECT w.id, w.lane, w.rank, w.fence, w.attempts, w.crashes, w.first_start_at, w.run FROM waiting w
WHERE w.id AMONG(:ids, uuid) AND NOT EXISTS (SELECT 1 FROM blocker b WHERE b.execution = w.id);
DELETE FROM waiting
WHERE id AMONG(:ids, uuid) AND NOT EXISTS (SELECT 1 FROM blocker b WHERE b.execution = waiting.id)

-- name: lift_blocker
INSERT INTO lifted_blocker (kind, key, released_at) VALUES (:kind, :key, :now) ON CONFLICT DO NOTHING

-- name: unlift_blocker
DELETE FROM lifted_blocker WHERE kind = :kind AND key = :key

-- name: next_lifted
-- The one whose last batch is the oldest, so that a blocker with a million executions does not delay the others.
SELECT kind, key FROM lifted_blocker ORDER BY released_at, kind, key LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED

-- name: note_release
UPDATE lifted_blocker SET released_at = :now WHERE kind = :kind AND key = :key

-- name: lock_lifted
-- Waits for claims that are about to put more executions behind this blocker.
SELECT 1 FROM lifted_blocker WHERE kind = :kind AND key = :key FOR UPDATE

-- name: has_blocked
SELECT 1 FROM blocker WHERE kind = :kind AND key = :key LIMIT 1

-- name: lifted_fronts
-- The lowest rank behind each. Locked, so that none is forgotten while this transaction puts executions behind it.
SELECT l.key, (
    SELECT b.rank FROM blocker b WHERE b.kind = l.kind AND b.key = l.key ORDER BY b.rank, b.execution LIMIT 1) AS rank
FROM lifted_blocker l WHERE l.kind = :kind AND l.key AMONG(:keys, text) ORDER BY l.key FOR KEY SHARE OF l
