-- name: needs_of_ready
-- The requirements of ready executions in these queues, without paused queues.
SELECT DISTINCT l.namespace, l.requirements FROM lane l CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE l.namespace AMONG(:namespaces, text) AND (:all_apps OR l.app AMONG(:apps, text)) AND (:all_queues OR l.queue AMONG(:queues, text))
  AND coalesce(l.runs, l.job) AMONG(:jobs, text) AND q.paused_at IS NULL AND EXISTS (SELECT 1 FROM ready r WHERE r.lane = l.id)

-- name: load_of_lanes
SELECT l.id, l.app, l.job, l.queue, l.requirements, CASE WHEN q.paused_at IS NULL THEN 0 ELSE 1 END AS paused,
       (SELECT count(*) FROM ready r WHERE r.lane = l.id) AS ready,
       (SELECT x.run_at FROM execution x
        WHERE x.id = (SELECT r.id FROM ready r WHERE r.lane = l.id ORDER BY r.rank, r.id LIMIT 1)) AS oldest_at, l.runs
FROM lane l CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE l.namespace = :namespace ORDER BY l.app, l.queue, l.requirements, l.id

-- name: due_in_lanes
SELECT s.lane, count(*) AS count FROM scheduled s WHERE s.run_at <= :until GROUP BY s.lane

-- name: running_in_lanes
-- With the sum of the time that they have run so far.
SELECT r.lane, count(*) AS count, CAST(sum(CAST(:now AS bigint) - r.started_at) AS bigint) AS running_for
FROM running r GROUP BY r.lane

-- name: arrivals_in_lanes
-- Counts the newest executions. Ids start with the time.
SELECT n.lane, count(*) AS count, min(n.created_at) AS first_at FROM (
    SELECT x.lane, x.created_at FROM execution x WHERE x.id >= :lowest ORDER BY x.id DESC LIMIT :most) n
WHERE n.created_at > :since GROUP BY n.lane

-- name: newest_ends
SELECT id, started_at, finished_at FROM finished WHERE started_at IS NOT NULL ORDER BY id DESC LIMIT :most

-- name: lanes_of
-- Without a join and with bounds, so that PostgreSQL opens only the partitions that may contain the ids.
SELECT id, lane FROM execution WHERE id AMONG(:ids, uuid) AND id >= :lowest AND id <= :highest
