-- name: add_namespace
INSERT INTO namespace (name, created_at) VALUES (:namespace, :now) ON CONFLICT DO NOTHING

-- name: add_queues
INSERT INTO queue (namespace, name)
SELECT :namespace, name FROM EACH(:queues, name text) e WHERE true ON CONFLICT DO NOTHING

-- name: add_declared_queues
INSERT INTO queue (namespace, name, policy, max_depth)
SELECT :namespace, name, policy, max_depth FROM EACH(:queues, name text, policy text, max_depth bigint) e WHERE true
ON CONFLICT DO NOTHING

-- name: set_queue
INSERT INTO queue (namespace, name, policy, max_depth) VALUES (:namespace, :queue, :policy, :max_depth)
ON CONFLICT (namespace, name)
DO UPDATE SET policy = excluded.policy, max_depth = excluded.max_depth, revision = queue.revision + 1
WHERE queue.policy <> excluded.policy OR coalesce(queue.max_depth, 0) <> coalesce(excluded.max_depth, 0)

-- name: lock_queue
SELECT revision, policy, max_depth FROM queue WHERE namespace = :namespace AND name = :queue FOR UPDATE

-- name: add_lanes
INSERT INTO lane (namespace, app, job, queue, requirements, runs)
SELECT :namespace, :app, job, queue, requirements, runs
FROM EACH(:lanes, job text, queue text, requirements text, runs text) e WHERE true
ON CONFLICT (namespace, app, job, queue, requirements) DO UPDATE SET runs = excluded.runs
WHERE coalesce(lane.runs, '') <> coalesce(excluded.runs, '')

-- name: add_versions
-- The caller holds the row of the app, so no other transaction takes the same number.
INSERT INTO job_version (namespace, app, job, number, digest, definition, created_at)
SELECT :namespace, :app, e.job, 1 + coalesce((
           SELECT max(v.number) FROM job_version v
           WHERE v.namespace = :namespace AND v.app = :app AND v.job = e.job), 0),
       e.digest, e.definition, :now
FROM EACH(:versions, job text, digest text, definition text) e
WHERE NOT EXISTS (
    SELECT 1 FROM job_version v
    WHERE v.namespace = :namespace AND v.app = :app AND v.job = e.job AND v.digest = e.digest)
RETURNING job

-- name: versions
SELECT v.job, v.number, v.definition FROM EACH(:versions, job text, digest text) e
CROSS JOIN job_version v ON v.job = e.job AND v.digest = e.digest AND v.namespace = :namespace AND v.app = :app
ORDER BY v.job

-- name: add_jobs
INSERT INTO job (id, namespace, app, name, version, requirements, pause_after, base, created_at, created_by, updated_at)
SELECT id, :namespace, :app, job, version, requirements, pause_after, base, :now, 'code', :now
FROM EACH(:jobs, id uuid, job text, version bigint, requirements text, pause_after int, base bigint) e WHERE true
ON CONFLICT DO NOTHING

-- name: point_jobs
-- Only jobs of code: a deploy does not change a job that the API has defined.
INSERT INTO job (id, namespace, app, name, version, requirements, pause_after, base, created_at, created_by, updated_at)
SELECT id, :namespace, :app, job, version, requirements, pause_after, base, :now, 'code', :now
FROM EACH(:jobs, id uuid, job text, version bigint, requirements text, pause_after int, base bigint) e WHERE true
ON CONFLICT (namespace, app, name)
DO UPDATE SET version = excluded.version, requirements = excluded.requirements, pause_after = excluded.pause_after,
    revision = job.revision + CASE WHEN job.version <> excluded.version THEN 1 ELSE 0 END,
    updated_at = CASE WHEN job.version <> excluded.version THEN excluded.updated_at ELSE job.updated_at END
WHERE job.origin <> 'api'

-- name: jobs_of_api
SELECT name FROM job WHERE namespace = :namespace AND app = :app AND origin = 'api' AND name AMONG(:names, text)
ORDER BY name

-- name: set_origin
UPDATE job SET origin = :origin WHERE namespace = :namespace AND app = :app AND name = :job

-- name: set_runs
UPDATE job SET runs = :runs
WHERE namespace = :namespace AND app = :app AND name = :job AND coalesce(runs, '') <> coalesce(:runs, '')

-- name: deleted_versions
-- The last version of deleted jobs that had these names.
SELECT name, max(last) FROM deleted_job WHERE namespace = :namespace AND app = :app AND name AMONG(:names, text)
GROUP BY name

-- name: route
SELECT j.version, l.id, q.policy, q.max_depth, EXISTS (
           SELECT 1 FROM dependency d WHERE d.namespace = j.namespace AND d.app = j.app AND d.job = j.name) AS depends
FROM job j
JOIN lane l ON l.namespace = j.namespace AND l.app = j.app AND l.job = j.name AND l.queue = :queue
    AND l.requirements = j.requirements
JOIN queue q ON q.namespace = j.namespace AND q.name = :queue
WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job

-- name: requirements_of
SELECT requirements, runs FROM job WHERE namespace = :namespace AND app = :app AND name = :job

-- name: job_definition
SELECT v.definition FROM job j
JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job

-- name: apps_of_job
SELECT DISTINCT app FROM job WHERE namespace = :namespace AND name = :job ORDER BY app

-- name: pause_job
UPDATE job SET paused_at = :now, paused_by = :actor, paused_note = :note, revision = revision + 1, updated_at = :now
WHERE namespace = :namespace AND app = :app AND name = :job AND paused_at IS NULL

-- name: resume_job
-- Also resets the count of failures.
UPDATE job SET paused_at = NULL, paused_by = NULL, paused_note = NULL, failures = 0, revision = revision + 1,
    updated_at = :now
WHERE namespace = :namespace AND app = :app AND name = :job AND paused_at IS NOT NULL

-- name: held_jobs
-- Names of paused jobs of all namespaces and apps, and keys of resumed jobs that still have waiting executions.
SELECT (SELECT CAST(LISTING(name) AS text) || '' FROM job WHERE paused_at IS NOT NULL) AS paused,
       (SELECT CAST(LISTING(key) AS text) || '' FROM lifted_blocker WHERE kind = :kind) AS lifted

-- name: paused_now
-- Locked, so that a resume waits until the executions that this transaction blocks are there to be released.
SELECT j.namespace, j.app, j.name FROM EACH(:jobs, namespace text, app text, name text) e
CROSS JOIN job j ON j.namespace = e.namespace AND j.app = e.app AND j.name = e.name AND j.paused_at IS NOT NULL
ORDER BY j.namespace, j.app, j.name FOR SHARE OF j

-- name: jobs_that_pause
SELECT x.id, j.namespace, j.app, j.name, j.failures FROM execution x
JOIN job j ON j.namespace = x.namespace AND j.app = x.app AND j.name = x.job
WHERE x.id AMONG(:ids, uuid) AND j.pause_after IS NOT NULL

-- name: lock_failures
SELECT failures, pause_after FROM job
WHERE namespace = :namespace AND app = :app AND name = :job AND pause_after IS NOT NULL FOR UPDATE

-- name: set_failures
UPDATE job SET failures = :failures WHERE namespace = :namespace AND app = :app AND name = :job

-- name: pause_queue
UPDATE queue SET paused_at = :now, paused_by = :actor, paused_note = :note, revision = revision + 1
WHERE namespace = :namespace AND name = :queue AND paused_at IS NULL

-- name: resume_queue
UPDATE queue SET paused_at = NULL, paused_by = NULL, paused_note = NULL, revision = revision + 1
WHERE namespace = :namespace AND name = :queue AND paused_at IS NOT NULL

-- name: queue_exists
SELECT policy, max_depth, paused_at FROM queue WHERE namespace = :namespace AND name = :queue

-- name: add_audit
INSERT INTO audit (at, namespace, actor, action, subject, before, after, address, request)
VALUES (:now, :namespace, :actor, :action, :subject, :before, :after, :address, :request)
