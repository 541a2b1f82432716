-- name: add_pieces
-- A piece that exists already comes from a repeated write.
INSERT INTO log (id, fence, last, first, text)
SELECT id, fence, last, first, text FROM EACH(:rows, id uuid, fence int, last int, first int, text text) e
WHERE true
ON CONFLICT DO NOTHING

-- name: add_own_pieces
-- `add_pieces` for attempts of one worker. The last pieces arrive after their attempt has ended.
INSERT INTO log (id, fence, last, first, text)
SELECT id, fence, last, first, text FROM EACH(:rows, id uuid, fence int, last int, first int, text text) e
WHERE (SELECT count(*) FROM running r WHERE r.id = e.id AND r.fence = e.fence AND r.worker = :worker)
    + (SELECT count(*) FROM finished f WHERE f.id = e.id AND f.fence = e.fence AND f.worker = :worker) > 0
ON CONFLICT DO NOTHING

-- name: write_states @sqlite
-- Returns the ids of stale states. A null leaves the column as it is; a new attempt resets its progress.
SELECT e.id
FROM EACH(:rows, id uuid, fence int, at bigint, done float8, total float8, note text, checkpoint text) e
WHERE NOT EXISTS (
    SELECT 1 FROM running r WHERE r.id = e.id AND r.fence = e.fence AND r.worker = coalesce(:worker, r.worker));
INSERT INTO note (id, fence, at, done, total, note, checkpoint)
SELECT e.id, e.fence, e.at, e.done, e.total, e.note, e.checkpoint
FROM EACH(:rows, id uuid, fence int, at bigint, done float8, total float8, note text, checkpoint text) e
CROSS JOIN running r ON r.id = e.id AND r.fence = e.fence AND r.worker = coalesce(:worker, r.worker)
WHERE true
ON CONFLICT (id) DO UPDATE SET
    fence = excluded.fence, at = excluded.at,
    done = CASE WHEN note.fence = excluded.fence THEN coalesce(excluded.done, note.done) ELSE excluded.done END,
    total = CASE WHEN note.fence = excluded.fence THEN coalesce(excluded.total, note.total) ELSE excluded.total END,
    note = CASE WHEN note.fence = excluded.fence THEN coalesce(excluded.note, note.note) ELSE excluded.note END,
    checkpoint = coalesce(excluded.checkpoint, note.checkpoint)

-- name: write_states @postgres
-- Locks no row of `running`, because the transaction that ends the attempt may be a long one of the job itself. A row
-- that a later attempt has written meanwhile is not changed.
WITH e AS MATERIALIZED (
    SELECT * FROM EACH(:rows, id uuid, fence int, at bigint, done float8, total float8, note text, checkpoint text) t),
written AS (
    INSERT INTO note (id, fence, at, done, total, note, checkpoint)
    SELECT e.id, e.fence, e.at, e.done, e.total, e.note, e.checkpoint
    FROM e JOIN running r ON r.id = e.id AND r.fence = e.fence AND r.worker = coalesce(CAST(:worker AS bigint), r.worker)
    ORDER BY e.id
    ON CONFLICT (id) DO UPDATE SET
        fence = excluded.fence, at = excluded.at,
        done = CASE WHEN note.fence = excluded.fence THEN coalesce(excluded.done, note.done) ELSE excluded.done END,
        total = CASE WHEN note.fence = excluded.fence THEN coalesce(excluded.total, note.total) ELSE excluded.total END,
        note = CASE WHEN note.fence = excluded.fence THEN coalesce(excluded.note, note.note) ELSE excluded.note END,
        checkpoint = coalesce(excluded.checkpoint, note.checkpoint)
    WHERE note.fence <= excluded.fence
    RETURNING id, fence)
SELECT e.id FROM e LEFT JOIN written w ON w.id = e.id AND w.fence = e.fence WHERE w.id IS NULL

-- name: kept
SELECT id, checkpoint, suspicion FROM note WHERE id AMONG(:ids, uuid) AND (checkpoint IS NOT NULL OR suspicion > 0)

-- name: suspect
INSERT INTO note (id, fence, at, suspicion)
SELECT id, fence, :now, suspicion FROM EACH(:rows, id uuid, fence int, suspicion int) e WHERE true
ON CONFLICT (id) DO UPDATE SET suspicion = GREATEST(note.suspicion + 1, excluded.suspicion)

-- name: pieces_after
SELECT l.id, l.fence, l.last, l.first, l.text FROM log l
WHERE l.id = :id AND (l.fence, l.last) > (:fence, :number)
  AND (CAST(:attempt AS integer) IS NULL OR l.fence = :attempt)
  AND EXISTS (SELECT 1 FROM execution x WHERE x.id = :id AND x.namespace = :namespace)
ORDER BY l.fence, l.last LIMIT :most

-- name: pieces_before
-- From the last piece to the first. With :texts = 0 the texts are empty: enough to count lines.
SELECT l.id, l.fence, l.last, l.first, CASE WHEN :texts = 1 THEN l.text ELSE '' END AS text FROM log l
WHERE l.id = :id AND (l.fence, l.last) < (:fence, :number)
  AND (CAST(:attempt AS integer) IS NULL OR l.fence = :attempt)
  AND EXISTS (SELECT 1 FROM execution x WHERE x.id = :id AND x.namespace = :namespace)
ORDER BY l.fence DESC, l.last DESC LIMIT :most

-- name: state_told
SELECT n.id, n.fence, n.at, n.done, n.total, n.note, n.checkpoint FROM note n
WHERE n.id = :id AND EXISTS (SELECT 1 FROM execution x WHERE x.id = :id AND x.namespace = :namespace)

-- name: progress_told
SELECT id, done, total FROM note WHERE id AMONG(:ids, uuid) AND total IS NOT NULL

-- name: progress
SELECT status, fence FROM state WHERE id = :id AND namespace = :namespace
