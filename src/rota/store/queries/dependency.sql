-- name: awaited_ends
-- Whether a schedule waits for the end of an execution, and the names of all jobs that depend or are depended on.
SELECT EXISTS (SELECT 1 FROM hand WHERE waits_for IS NOT NULL),
       (SELECT CAST(LISTING(n.name) AS text) || '' FROM (
            SELECT job AS name FROM dependency UNION SELECT upstream FROM dependency) n)

-- name: edges
SELECT namespace, app, job, upstream_app, upstream, outcome, met FROM dependency
WHERE namespace = :namespace ORDER BY app, job, upstream_app, upstream

-- name: edges_of
SELECT d.namespace, d.app, d.job, d.upstream_app, d.upstream, d.outcome, d.met
FROM EACH(:jobs, app text, job text) e
CROSS JOIN dependency d ON d.namespace = :namespace AND d.app = e.app AND d.job = e.job

-- name: ended_jobs
-- Without steps of runs. With bounds, so that PostgreSQL opens only the partitions that may contain the ids.
SELECT id, namespace, app, job FROM execution
WHERE id AMONG(:ids, uuid) AND id >= :lowest AND id <= :highest AND run IS NULL

-- name: lock_edges_after
-- All edges of the jobs that depend on one of these, or are one of these. In the order of the key to avoid a deadlock.
SELECT d.namespace, d.app, d.job, d.upstream_app, d.upstream, d.outcome, d.met FROM dependency d
WHERE (d.namespace, d.app, d.job) IN (
    SELECT u.namespace, u.app, u.job FROM EACH(:jobs, namespace text, app text, job text) e
    CROSS JOIN dependency u ON u.namespace = e.namespace AND u.upstream_app = e.app AND u.upstream = e.job
    UNION SELECT namespace, app, job FROM EACH(:jobs, namespace text, app text, job text) o)
ORDER BY d.namespace, d.app, d.job, d.upstream_app, d.upstream FOR UPDATE OF d

-- name: lock_edges
SELECT d.namespace, d.app, d.job, d.upstream_app, d.upstream, d.outcome, d.met
FROM EACH(:jobs, namespace text, app text, job text) e
CROSS JOIN dependency d ON d.namespace = e.namespace AND d.app = e.app AND d.job = e.job
ORDER BY d.namespace, d.app, d.job, d.upstream_app, d.upstream FOR UPDATE OF d

-- name: lock_edges_of_app
-- Of the jobs of its code.
SELECT d.namespace, d.app, d.job, d.upstream_app, d.upstream, d.outcome, d.met FROM dependency d
WHERE d.namespace = :namespace AND d.app = :app
  AND NOT EXISTS (
      SELECT 1 FROM job j WHERE j.namespace = d.namespace AND j.app = d.app AND j.name = d.job AND j.origin = 'api')
ORDER BY d.namespace, d.app, d.job, d.upstream_app, d.upstream FOR UPDATE OF d

-- name: put_edges
INSERT INTO dependency (namespace, app, job, upstream_app, upstream, outcome, met)
SELECT namespace, app, job, upstream_app, upstream, outcome, met
FROM EACH(:rows, namespace text, app text, job text, upstream_app text, upstream text, outcome text, met uuid) e
WHERE true
ON CONFLICT (namespace, app, job, upstream_app, upstream) DO UPDATE SET outcome = excluded.outcome, met = excluded.met

-- name: drop_edges
DELETE FROM dependency WHERE (namespace, app, job, upstream_app, upstream) IN (
    SELECT namespace, app, job, upstream_app, upstream
    FROM EACH(:rows, namespace text, app text, job text, upstream_app text, upstream text) e)

-- name: keys_with_blocked
SELECT DISTINCT key FROM blocker WHERE kind = :kind AND key AMONG(:keys, text)

-- name: free_dependents
-- The jobs that no schedule starts and that have no execution which is queued, waits, runs, or was begun and is
-- scheduled to run again. A delayed execution that has not begun does not count, and neither do steps.
SELECT e.namespace, e.app, e.job FROM EACH(:jobs, namespace text, app text, job text) e
WHERE NOT EXISTS (
        SELECT 1 FROM schedule s
        WHERE s.job = e.job AND s.namespace = e.namespace AND s.app = e.app AND s.removed_at IS NULL)
  AND NOT EXISTS (
        SELECT 1 FROM lane l CROSS JOIN ready r ON r.lane = l.id AND r.run IS NULL
        WHERE l.namespace = e.namespace AND l.app = e.app AND l.job = e.job)
  AND NOT EXISTS (
        SELECT 1 FROM lane l CROSS JOIN waiting w ON w.lane = l.id AND w.run IS NULL
        WHERE l.namespace = e.namespace AND l.app = e.app AND l.job = e.job)
  AND NOT EXISTS (
        SELECT 1 FROM lane l CROSS JOIN scheduled d ON d.lane = l.id AND d.reason IS NOT NULL AND d.run IS NULL
        WHERE l.namespace = e.namespace AND l.app = e.app AND l.job = e.job)
  AND NOT EXISTS (
        SELECT 1 FROM running u CROSS JOIN lane l ON l.id = u.lane
        WHERE u.run IS NULL AND l.namespace = e.namespace AND l.app = e.app AND l.job = e.job)

-- name: upstream_of
SELECT upstream FROM execution WHERE id = :id

-- name: set_upstream
UPDATE execution SET upstream = :upstream WHERE id = :id

-- name: jobs_of_apps
SELECT app, name FROM job WHERE namespace = :namespace AND app AMONG(:apps, text)
