-- name: add_namespace
INSERT INTO namespace (name, created_at) VALUES (:namespace, :now) ON CONFLICT DO NOTHING

-- name: add_queues
INSERT INTO queue (namespace, name)
SELECT :namespace, name FROM EACH(:queues, name text) e WHERE true ON CONFLICT DO NOTHING

-- name: set_queue
INSERT INTO queue (namespace, name, policy, max_depth) VALUES (:namespace, :queue, :policy, :max_depth)
ON CONFLICT (namespace, name) DO UPDATE SET policy = excluded.policy, max_depth = excluded.max_depth

-- name: add_lanes
INSERT INTO lane (namespace, app, queue, requirements)
SELECT :namespace, :app, queue, requirements FROM EACH(:lanes, queue text, requirements text) e WHERE true
ON CONFLICT DO NOTHING

-- name: add_versions
INSERT INTO job_version (namespace, app, job, digest, definition, created_at)
SELECT :namespace, :app, job, digest, definition, :now
FROM EACH(:versions, job text, digest text, definition text) e WHERE true
ON CONFLICT DO NOTHING
RETURNING id, job

-- name: point_job
INSERT INTO job (namespace, app, name, version, requirements, pause_after)
VALUES (:namespace, :app, :job, :version, :requirements, :pause_after)
ON CONFLICT (namespace, app, name)
DO UPDATE SET version = excluded.version, requirements = excluded.requirements, pause_after = excluded.pause_after

-- name: route
SELECT j.version, l.id, q.policy, q.max_depth
FROM job j
JOIN lane l ON l.namespace = j.namespace AND l.app = j.app AND l.queue = :queue
    AND l.requirements = j.requirements
JOIN queue q ON q.namespace = j.namespace AND q.name = :queue
WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job

-- name: requirements_of
SELECT requirements FROM job WHERE namespace = :namespace AND app = :app AND name = :job

-- name: job_definition
SELECT v.definition FROM job j JOIN job_version v ON v.id = j.version
WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job

-- name: apps_of_job
SELECT DISTINCT app FROM job WHERE namespace = :namespace AND name = :job ORDER BY app

-- name: pause_job
UPDATE job SET paused_at = :now, paused_by = :actor, paused_note = :note
WHERE namespace = :namespace AND app = :app AND name = :job AND paused_at IS NULL

-- name: resume_job
-- What has failed before counts no more.
UPDATE job SET paused_at = NULL, paused_by = NULL, paused_note = NULL, failures = 0
WHERE namespace = :namespace AND app = :app AND name = :job AND paused_at IS NOT NULL

-- name: paused_jobs
SELECT CAST(LISTING(name) AS text) || '' FROM job WHERE namespace = :namespace AND app = :app AND paused_at IS NOT NULL

-- name: paused_now
-- Nobody resumes one of them before this transaction has put aside what is to wait for that.
SELECT name FROM job WHERE namespace = :namespace AND app = :app AND name AMONG(:jobs, text) AND paused_at IS NOT NULL
ORDER BY name FOR SHARE

-- name: put_aside
-- In the transaction of the claim: nobody has seen the fence that is taken back.
INSERT INTO waiting (id, lane, priority, waits_for, since_at, fence, attempts, crashes, first_start_at)
SELECT r.id, r.lane, x.priority, :waits_for, :now, r.fence - 1, r.attempts, r.crashes,
       CASE WHEN r.first_start_at < r.started_at THEN r.first_start_at END
FROM running r JOIN execution x ON x.id = r.id WHERE r.id AMONG(:ids, uuid);
DELETE FROM running WHERE id AMONG(:ids, uuid)

-- name: lanes_put_aside
SELECT DISTINCT w.lane FROM waiting w JOIN lane l ON l.id = w.lane
WHERE w.waits_for = :waits_for AND l.namespace = :namespace

-- name: take_up @sqlite
-- To the place that each had.
INSERT INTO ready (lane, rank, id, fence, attempts, crashes, first_start_at)
SELECT w.lane, CASE q.policy WHEN 'fifo' THEN x.run_at ELSE x.run_at - w.priority * 60000000 END, w.id, w.fence, w.attempts,
       w.crashes, w.first_start_at
FROM waiting w JOIN execution x ON x.id = w.id JOIN lane l ON l.id = w.lane
JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE w.waits_for = :waits_for AND l.namespace = :namespace;
DELETE FROM waiting WHERE waits_for = :waits_for AND lane IN (SELECT l.id FROM lane l WHERE l.namespace = :namespace)

-- name: take_up @postgres
-- To the place that each had. What somebody ends or moves at the same moment is not there any more when it is our turn.
WITH aside AS MATERIALIZED (
    SELECT w.id FROM waiting w JOIN lane l ON l.id = w.lane
    WHERE w.waits_for = :waits_for AND l.namespace = :namespace ORDER BY w.id FOR UPDATE OF w),
gone AS (
    DELETE FROM waiting w USING aside WHERE w.id = aside.id
    RETURNING w.id, w.lane, w.priority, w.fence, w.attempts, w.crashes, w.first_start_at)
INSERT INTO ready (lane, rank, id, fence, attempts, crashes, first_start_at)
SELECT g.lane, CASE q.policy WHEN 'fifo' THEN x.run_at ELSE x.run_at - g.priority * CAST(60000000 AS bigint) END, g.id,
       g.fence, g.attempts, g.crashes, g.first_start_at
FROM gone g JOIN execution x ON x.id = g.id JOIN lane l ON l.id = g.lane
JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue

-- name: jobs_that_pause
SELECT x.id, j.namespace, j.app, j.name, j.failures FROM execution x
JOIN job j ON j.namespace = x.namespace AND j.app = x.app AND j.name = x.job
WHERE x.id AMONG(:ids, uuid) AND j.pause_after IS NOT NULL

-- name: lock_failures
SELECT failures, pause_after FROM job
WHERE namespace = :namespace AND app = :app AND name = :job AND pause_after IS NOT NULL FOR UPDATE

-- name: set_failures
UPDATE job SET failures = :failures WHERE namespace = :namespace AND app = :app AND name = :job

-- name: jobs
SELECT j.app, j.name, v.definition, j.paused_at, j.paused_by, j.paused_note FROM job j JOIN job_version v ON v.id = j.version
WHERE j.namespace = :namespace ORDER BY j.app, j.name

-- name: pause_queue
UPDATE queue SET paused_at = :now, paused_by = :actor, paused_note = :note
WHERE namespace = :namespace AND name = :queue AND paused_at IS NULL

-- name: resume_queue
UPDATE queue SET paused_at = NULL, paused_by = NULL, paused_note = NULL
WHERE namespace = :namespace AND name = :queue AND paused_at IS NOT NULL

-- name: queue_exists
SELECT policy, max_depth, paused_at FROM queue WHERE namespace = :namespace AND name = :queue

-- name: lanes_of_queue
SELECT id FROM lane WHERE namespace = :namespace AND queue = :queue

-- name: add_audit
INSERT INTO audit (at, actor, action, subject, before, after)
VALUES (:now, :actor, :action, :subject, :before, :after)
