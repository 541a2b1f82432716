-- name: retentions
SELECT name, retention_s FROM namespace ORDER BY name

-- name: set_retention
UPDATE namespace SET retention_s = :retention_s WHERE name = :namespace

-- name: add_retention_pass
INSERT INTO retention_pass (name, begun_at, beat_at, done_at, full_at, removed, mark) VALUES (:name, 0, 0, 0, 0, 0, '')
ON CONFLICT DO NOTHING

-- name: retention_pass
SELECT begun_at, beat_at, done_at, full_at, removed, mark FROM retention_pass WHERE name = :name

-- name: lock_retention_pass
SELECT begun_at, beat_at, done_at, full_at, removed, mark FROM retention_pass WHERE name = :name FOR UPDATE SKIP LOCKED

-- name: begin_retention_pass
UPDATE retention_pass SET begun_at = :begun_at, beat_at = :now, full_at = :full_at, removed = :removed, mark = :mark
WHERE name = :name

-- name: beat_retention_pass
-- Changes nothing if another supervisor has taken over the pass.
UPDATE retention_pass SET beat_at = :now, removed = removed + :removed, mark = coalesce(:mark, mark)
WHERE name = :name AND begun_at = :begun_at

-- name: end_retention_pass
UPDATE retention_pass SET done_at = :now, beat_at = :now WHERE name = :name AND begun_at = :begun_at

-- name: history_page
-- Executions in the order of their ids, and whether each may be deleted: it ended before the cutoff of its namespace,
-- is not a dead letter, and no open run refers to its result.
SELECT x.id, x.deadline,
       CASE WHEN f.finished_at < c.cutoff AND d.id IS NULL AND NEEDLESS(x) THEN 1 ELSE 0 END AS goes
FROM (SELECT id, namespace, deadline, run FROM execution WHERE id > :after AND id < :bound ORDER BY id LIMIT :most) x
LEFT JOIN EACH(:cutoffs, namespace text, cutoff bigint) c ON c.namespace = x.namespace
LEFT JOIN finished f ON f.id = x.id AND f.final = 1
LEFT JOIN dead d ON d.id = x.id
ORDER BY x.id

-- name: strays_page @postgres
-- The same for the default partition.
SELECT x.id, x.deadline,
       CASE WHEN f.finished_at < c.cutoff AND d.id IS NULL AND NEEDLESS(x) THEN 1 ELSE 0 END AS goes
FROM (SELECT id, namespace, deadline, run FROM execution_default WHERE id > :after AND id < :bound ORDER BY id LIMIT :most) x
LEFT JOIN EACH(:cutoffs, namespace text, cutoff bigint) c ON c.namespace = x.namespace
LEFT JOIN finished f ON f.id = x.id AND f.final = 1
LEFT JOIN dead d ON d.id = x.id
ORDER BY x.id

-- name: lock_history
-- The bounds follow from the list; with them PostgreSQL opens only the partitions between them.
SELECT x.id FROM execution x WHERE x.id >= :lowest AND x.id <= :highest AND x.id AMONG(:ids, uuid) AND NEEDLESS(x)
ORDER BY x.id FOR UPDATE OF x SKIP LOCKED

-- name: settle_ticks
-- Copies the final status of executions that are about to be deleted into the ledger.
UPDATE tick SET ended = f.status
FROM execution x JOIN finished f ON f.id = x.id AND f.final = 1
JOIN schedule s ON s.name = x.schedule AND s.app = x.app AND s.namespace = x.namespace
WHERE PRUNED(x, f) AND x.schedule IS NOT NULL
  AND tick.schedule = s.id AND tick.at = x.tick AND tick.execution = x.id

-- name: drop_history
DELETE FROM log WHERE id >= :lowest AND id <= :highest AND id AMONG(:ids, uuid);
DELETE FROM note WHERE id AMONG(:ids, uuid);
DELETE FROM tag WHERE id AMONG(:ids, uuid);
DELETE FROM step WHERE run >= :lowest AND run <= :highest AND run AMONG(:ids, uuid);
DELETE FROM run_ended WHERE id >= :lowest AND id <= :highest AND id AMONG(:ids, uuid);
DELETE FROM finished WHERE id >= :lowest AND id <= :highest AND id AMONG(:ids, uuid);
DELETE FROM execution WHERE id >= :lowest AND id <= :highest AND id AMONG(:ids, uuid)

-- name: forget_day @postgres
-- The tables without partitions that have rows about the executions of a day.
DELETE FROM note n WHERE n.id >= :low AND n.id < :high
  AND NOT EXISTS (SELECT 1 FROM EACH(:kept, id uuid) k WHERE k.id = n.id);
DELETE FROM tag t WHERE t.id >= :low AND t.id < :high
  AND NOT EXISTS (SELECT 1 FROM EACH(:kept, id uuid) k WHERE k.id = t.id);
DELETE FROM expiry e WHERE e.id >= :low AND e.id < :high
  AND NOT EXISTS (SELECT 1 FROM EACH(:kept, id uuid) k WHERE k.id = e.id)

-- name: executions_between @postgres
SELECT count(*) FROM execution WHERE id >= :low AND id < :high

-- name: events_page
-- Events in the order of their ids, and whether each may be deleted: it was emitted before the cutoff of its namespace.
SELECT e.id, CASE WHEN e.emitted_at < c.cutoff THEN 1 ELSE 0 END AS goes
FROM (SELECT id, namespace, emitted_at FROM event WHERE id > :after AND id < :bound ORDER BY id LIMIT :most) e
LEFT JOIN EACH(:cutoffs, namespace text, cutoff bigint) c ON c.namespace = e.namespace ORDER BY e.id

-- name: stray_events_page @postgres
-- The same for events in the default partition.
SELECT e.id, CASE WHEN e.emitted_at < c.cutoff THEN 1 ELSE 0 END AS goes
FROM (SELECT id, namespace, emitted_at FROM event_default WHERE id > :after AND id < :bound ORDER BY id LIMIT :most) e
LEFT JOIN EACH(:cutoffs, namespace text, cutoff bigint) c ON c.namespace = e.namespace ORDER BY e.id

-- name: drop_events
DELETE FROM event_open WHERE event AMONG(:ids, uuid);
DELETE FROM delivery WHERE event >= :lowest AND event <= :highest AND event AMONG(:ids, uuid);
DELETE FROM event WHERE id >= :lowest AND id <= :highest AND id AMONG(:ids, uuid)

-- name: forget_expiries @sqlite
DELETE FROM expiry WHERE (deadline, id) IN (SELECT deadline, id FROM EACH(:rows, deadline bigint, id uuid) e)

-- name: forget_expiries @postgres
DELETE FROM expiry x USING EACH(:rows, deadline bigint, id uuid) e WHERE x.deadline = e.deadline AND x.id = e.id

-- name: keys_page
-- Keys in the order in which they were taken, and whether each may be deleted: its holder is deleted already. The keys
-- of requests are kept longer.
SELECT k.taken_at, k.holder, k.namespace, k.app, k.job, k.kind, k.key,
       CASE WHEN k.taken_at < c.cutoff AND k.kind <> :kept
             AND (k.kind <> :request OR k.taken_at < :requests_until)
             AND NOT EXISTS (SELECT 1 FROM execution x WHERE x.id = k.holder)
             AND NOT EXISTS (SELECT 1 FROM event e WHERE e.id = k.holder) THEN 1 ELSE 0 END AS goes
FROM (SELECT taken_at, holder, namespace, app, job, kind, key FROM unique_key
      WHERE (taken_at, holder) > (:taken_at, :holder) AND taken_at < :bound ORDER BY taken_at, holder LIMIT :most) k
LEFT JOIN EACH(:cutoffs, namespace text, cutoff bigint) c ON c.namespace = k.namespace
ORDER BY k.taken_at, k.holder

-- name: drop_keys @sqlite
DELETE FROM unique_key WHERE (namespace, app, job, kind, key, holder) IN (
    SELECT namespace, app, job, kind, key, holder
    FROM EACH(:rows, namespace text, app text, job text, kind text, key text, holder uuid) e)

-- name: drop_keys @postgres
DELETE FROM unique_key k
USING EACH(:rows, namespace text, app text, job text, kind text, key text, holder uuid) e
WHERE k.namespace = e.namespace AND k.app = e.app AND k.job = e.job AND k.kind = e.kind AND k.key = e.key
  AND k.holder = e.holder

-- name: drop_workers
-- A worker that a dead letter names is kept with the dead letter.
DELETE FROM worker WHERE id IN (
    SELECT w.id FROM worker w
    WHERE w.stopped_at < :bound AND NOT EXISTS (SELECT 1 FROM running r WHERE r.worker = w.id)
      AND w.id NOT IN (SELECT f.worker FROM dead d CROSS JOIN finished f ON f.id = d.id WHERE f.worker IS NOT NULL)
    ORDER BY w.id LIMIT :most)

-- name: drop_audit
-- Reads only the first rows, which are the oldest.
DELETE FROM audit WHERE at < :bound AND id IN (SELECT a.id FROM audit a ORDER BY a.id LIMIT :most)

-- name: drop_request_keys
DELETE FROM request_key WHERE (namespace, actor, route, key) IN (
    SELECT r.namespace, r.actor, r.route, r.key FROM request_key r WHERE r.created_at < :bound
    ORDER BY r.created_at LIMIT :most)

-- name: namespace_content
SELECT n.name, CASE WHEN EXISTS (SELECT 1 FROM job j WHERE j.namespace = n.name) THEN 'jobs'
                    WHEN EXISTS (SELECT 1 FROM schedule s WHERE s.namespace = n.name) THEN 'schedules'
                    WHEN EXISTS (SELECT 1 FROM token t WHERE t.namespace = n.name AND t.revoked_at IS NULL) THEN 'tokens'
                    WHEN EXISTS (SELECT 1 FROM event e WHERE e.namespace = n.name) THEN 'events'
                    WHEN EXISTS (SELECT 1 FROM worker w WHERE SERVES(w, n.name) AND LIVE(w)) THEN 'workers' END
FROM namespace n WHERE n.name = :namespace

-- name: remove_namespace
DELETE FROM queue WHERE namespace = :namespace;
DELETE FROM namespace WHERE name = :namespace

-- name: oldest
SELECT id, created_at FROM execution ORDER BY id LIMIT 1

-- name: overdue
SELECT count(*) FROM (SELECT id, namespace, run FROM execution ORDER BY id LIMIT :most) x
JOIN EACH(:cutoffs, namespace text, cutoff bigint) c ON c.namespace = x.namespace
JOIN finished f ON f.id = x.id AND f.final = 1
WHERE f.finished_at < c.cutoff AND NOT EXISTS (SELECT 1 FROM dead d WHERE d.id = x.id) AND NEEDLESS(x)

-- name: newest_ids
SELECT id, created_at, actor FROM execution WHERE namespace = :namespace ORDER BY id DESC LIMIT :most
