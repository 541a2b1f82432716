-- The changes between two instants, newest first.

-- name: audited_between
-- Reads the newest rows, up to a bound: most of the trail is about single executions.
SELECT a.id, a.at, a.actor, a.action, a.subject, a.after FROM (
    SELECT id, at, actor, action, subject, after FROM audit WHERE namespace = :namespace ORDER BY id DESC LIMIT :looks) a
WHERE a.at >= :low AND a.at < :high
  AND NOT (a.action LIKE 'execution.%' OR a.action LIKE 'dead.%' OR a.action LIKE 'action.%' OR a.action LIKE 'event.%'
           OR a.action LIKE 'token.%')
ORDER BY a.at DESC, a.id DESC LIMIT :most

-- name: versions_between
SELECT v.app, v.job, v.number - CASE WHEN v.number > j.base THEN j.base ELSE 0 END AS version, v.created_at, v.created_by
FROM job_version v LEFT JOIN job j ON j.namespace = v.namespace AND j.app = v.app AND j.name = v.job
WHERE v.namespace = :namespace AND v.created_at >= :low AND v.created_at < :high ORDER BY v.created_at DESC LIMIT :most

-- name: workers_started_between
SELECT w.id, w.name, w.app, w.started_at FROM worker w
WHERE SERVES(w, :namespace) AND w.started_at >= :low AND w.started_at < :high ORDER BY w.started_at DESC LIMIT :most

-- name: workers_stopped_between
SELECT w.id, w.name, w.app, w.stopped_at, w.state, w.ended FROM worker w
WHERE SERVES(w, :namespace) AND w.stopped_at >= :low AND w.stopped_at < :high ORDER BY w.stopped_at DESC LIMIT :most

-- name: names_of_workers
SELECT id, name FROM worker WHERE id AMONG(:ids, bigint)
