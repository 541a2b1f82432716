-- name: lane_window
SELECT id, rank FROM ready WHERE lane = :lane AND rank <= :highest ORDER BY rank, id LIMIT :most

-- name: affinity_values @sqlite
SELECT x.id, x.priority, q.policy, x.arguments -> ('$."' || :argument || '"') AS value
FROM execution x CROSS JOIN queue q ON q.namespace = x.namespace AND q.name = x.queue
WHERE x.id AMONG(:ids, uuid) AND x.id >= :lowest AND x.id <= :highest

-- name: affinity_values @postgres
SELECT x.id, x.priority, q.policy, CAST(CAST(x.arguments AS jsonb) -> CAST(:argument AS text) AS text) AS value
FROM execution x CROSS JOIN queue q ON q.namespace = x.namespace AND q.name = x.queue
WHERE x.id AMONG(:ids, uuid) AND x.id >= :lowest AND x.id <= :highest

-- name: affinity_holders
SELECT a.key, a.worker FROM affinity a JOIN worker w ON w.id = a.worker
WHERE a.namespace = :namespace AND a.app = :app AND a.key AMONG(:keys, text) AND LIVE(w)

-- name: claim_these @sqlite
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

-- name: keep_affinity
INSERT INTO affinity (namespace, app, key, worker, used_at)
SELECT namespace, app, key, :worker, :now FROM EACH(:keys, namespace text, app text, key text) e WHERE true
ORDER BY namespace, app, key
ON CONFLICT (namespace, app, key) DO UPDATE SET worker = excluded.worker, used_at = excluded.used_at

-- name: drop_affinity
DELETE FROM affinity WHERE (namespace, app, key) IN (
    SELECT a.namespace, a.app, a.key FROM affinity a WHERE a.used_at < :bound LIMIT :most)
