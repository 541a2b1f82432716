-- name: add_namespace
INSERT INTO namespace (name, created_at) VALUES (:namespace, :now) ON CONFLICT DO NOTHING

-- name: add_queues
INSERT INTO queue (namespace, name)
SELECT :namespace, name FROM EACH(:queues, name text) e WHERE true ON CONFLICT DO NOTHING

-- name: set_queue
INSERT INTO queue (namespace, name, policy, max_depth) VALUES (:namespace, :queue, :policy, :max_depth)
ON CONFLICT (namespace, name) DO UPDATE SET policy = excluded.policy, max_depth = excluded.max_depth

-- name: add_lanes
INSERT INTO lane (namespace, app, queue)
SELECT :namespace, :app, queue FROM EACH(:queues, queue text) e WHERE true ON CONFLICT DO NOTHING

-- name: add_versions
INSERT INTO job_version (namespace, app, job, digest, definition, created_at)
SELECT :namespace, :app, job, digest, definition, :now
FROM EACH(:versions, job text, digest text, definition text) e WHERE true
ON CONFLICT DO NOTHING
RETURNING id, job

-- name: point_job
INSERT INTO job (namespace, app, name, version) VALUES (:namespace, :app, :job, :version)
ON CONFLICT (namespace, app, name) DO UPDATE SET version = excluded.version

-- name: route
SELECT j.version, l.id, q.policy, q.max_depth
FROM job j
JOIN lane l ON l.namespace = j.namespace AND l.app = j.app AND l.queue = :queue AND l.requirements = ''
JOIN queue q ON q.namespace = j.namespace AND q.name = :queue
WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job

-- name: job_definition
SELECT v.definition FROM job j JOIN job_version v ON v.id = j.version
WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job

-- name: apps_of_job
SELECT DISTINCT app FROM job WHERE namespace = :namespace AND name = :job ORDER BY app

-- name: jobs
SELECT j.app, j.name, v.definition FROM job j JOIN job_version v ON v.id = j.version
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
