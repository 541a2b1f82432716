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

-- name: keep_affinity
INSERT INTO affinity (namespace, app, key, worker, used_at)
SELECT namespace, app, key, :worker, :now FROM EACH(:keys, namespace text, app text, key text) e WHERE true
ORDER BY namespace, app, key
ON CONFLICT (namespace, app, key) DO UPDATE SET worker = excluded.worker, used_at = excluded.used_at

-- name: drop_affinity
DELETE FROM affinity WHERE (namespace, app, key) IN (
    SELECT a.namespace, a.app, a.key FROM affinity a WHERE a.used_at < :bound LIMIT :most)
