-- name: unended_of
-- With bounds, so that PostgreSQL opens only the partitions that may contain the ids.
SELECT x.namespace, x.id FROM execution x
WHERE x.id AMONG(:ids, uuid) AND x.id >= :lowest AND x.id <= :highest
  AND NOT EXISTS (SELECT 1 FROM finished f WHERE f.id = x.id AND f.final = 1 AND f.id >= :lowest AND f.id <= :highest)

-- name: quotas_of
SELECT quotas FROM namespace WHERE name = :namespace

-- name: all_quotas
SELECT name, quotas FROM namespace WHERE quotas IS NOT NULL

-- name: lock_quotas
SELECT quotas FROM namespace WHERE name = :namespace FOR UPDATE

-- name: set_quotas
UPDATE namespace SET quotas = :quotas WHERE name = :namespace

-- name: quota_use
SELECT (SELECT count(*) FROM (
            SELECT 1 FROM lane l CROSS JOIN ready r ON r.lane = l.id WHERE l.namespace = :namespace LIMIT :most) c),
       (SELECT count(*) FROM lane l CROSS JOIN running u ON u.lane = l.id WHERE l.namespace = :namespace),
       (SELECT count(*) FROM job WHERE namespace = :namespace AND app <> '_rota'),
       (SELECT count(*) FROM schedule WHERE namespace = :namespace AND removed_at IS NULL),
       (SELECT count(*) FROM token WHERE namespace = :namespace AND revoked_at IS NULL)

-- name: namespace_depth
SELECT count(*) FROM (
    SELECT 1 FROM lane l CROSS JOIN ready r ON r.lane = l.id WHERE l.namespace = :namespace LIMIT :most) counted

-- name: count_jobs
-- Without Rota's own.
SELECT count(*) FROM job WHERE namespace = :namespace AND app <> '_rota'

-- name: count_schedules
SELECT count(*) FROM schedule WHERE namespace = :namespace AND removed_at IS NULL

-- name: count_tokens
SELECT count(*) FROM token WHERE namespace = :namespace AND revoked_at IS NULL

-- name: see_node
DELETE FROM server_node WHERE seen_at < :until;
INSERT INTO server_node (id, seen_at) VALUES (:id, :now) ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at

-- name: live_nodes
SELECT count(*) FROM server_node WHERE seen_at >= :since

-- name: forget_node
DELETE FROM server_node WHERE id = :id

-- name: open_callbacks
SELECT EXISTS (SELECT 1 FROM callback_open)

-- name: asked_callbacks
-- With bounds, so that PostgreSQL opens only the partitions that may contain the ids.
SELECT x.id, x.namespace, x.app, x.job, x.callback FROM callback_open c CROSS JOIN execution x ON x.id = c.execution
WHERE c.execution AMONG(:ids, uuid) AND x.id >= :lowest AND x.id <= :highest ORDER BY x.id FOR UPDATE OF c

-- name: close_callbacks
DELETE FROM callback_open WHERE execution AMONG(:ids, uuid)

-- name: forgotten_callbacks
SELECT c.execution, f.status, f.reason FROM callback_open c
CROSS JOIN finished f ON f.id = c.execution AND f.final = 1
WHERE c.execution >= :after AND f.id >= :after ORDER BY c.execution LIMIT :most

-- name: callback_call
-- The execution that calls back for an execution.
SELECT s.id, s.status FROM state s WHERE s.parent = :parent AND s.namespace = :namespace AND s.app = :app AND s.job = :job
  AND s.id >= :parent
ORDER BY s.id DESC LIMIT 1

-- name: callback_of
SELECT callback FROM execution WHERE id = :id AND namespace = :namespace
