-- name: job_called
-- A job by its name, in each app that has one.
SELECT j.id, j.app, j.name, j.version, j.base, NULL AS last, j.origin, j.revision, j.runs, j.paused_at, j.paused_by,
       j.paused_note, j.created_at, j.created_by, j.updated_at, NULL AS deleted_at, v.definition, v.source,
       v.template
FROM job j JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
WHERE j.namespace = :namespace AND j.name = :name AND (CAST(:app AS text) IS NULL OR j.app = :app) ORDER BY j.app

-- name: job_with_id
SELECT j.id, j.app, j.name, j.version, j.base, NULL AS last, j.origin, j.revision, j.runs, j.paused_at, j.paused_by,
       j.paused_note, j.created_at, j.created_by, j.updated_at, NULL AS deleted_at, v.definition, v.source,
       v.template
FROM job j JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
WHERE j.id = :id AND j.namespace = :namespace

-- name: deleted_with_id
SELECT d.id, d.app, d.name, d.version, d.base, d.last, d.origin, d.revision, NULL AS runs, NULL AS paused_at,
       NULL AS paused_by, NULL AS paused_note, d.created_at, d.created_by, d.deleted_at AS updated_at, d.deleted_at,
       v.definition, v.source,
       v.template
FROM deleted_job d
JOIN job_version v ON v.namespace = d.namespace AND v.app = d.app AND v.job = d.name AND v.number = d.version
WHERE d.id = :id AND d.namespace = :namespace

-- name: jobs_listed
-- In the order of names. That order is the database's, so the names with a prefix may not be a contiguous range.
SELECT j.id, j.app, j.name, j.version, j.base, NULL AS last, j.origin, j.revision, j.runs, j.paused_at, j.paused_by,
       j.paused_note, j.created_at, j.created_by, j.updated_at, NULL AS deleted_at, v.definition, v.source,
       v.template
FROM job j JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
WHERE j.namespace = :namespace AND (:is_first OR (j.name, j.app) PAST (:name, :app))
  AND substr(j.name, 1, length(:prefix)) = :prefix
ORDER BY j.name WAY, j.app WAY LIMIT :most

-- name: deleted_listed
SELECT d.id, d.app, d.name, d.version, d.base, d.last, d.origin, d.revision, NULL AS runs, NULL AS paused_at,
       NULL AS paused_by, NULL AS paused_note, d.created_at, d.created_by, d.deleted_at AS updated_at, d.deleted_at,
       v.definition, v.source,
       v.template
FROM deleted_job d
JOIN job_version v ON v.namespace = d.namespace AND v.app = d.app AND v.job = d.name AND v.number = d.version
WHERE d.namespace = :namespace AND (:is_first OR (d.name, d.app, d.id) PAST (:name, :app, :id))
  AND substr(d.name, 1, length(:prefix)) = :prefix
ORDER BY d.name WAY, d.app WAY, d.id WAY LIMIT :most

-- name: takers
-- The live workers that can run a job, with what they offer and the queues that they serve.
SELECT w.id, w.offers, w.queues, j.requirements FROM job j
CROSS JOIN worker w ON SERVES(w, j.namespace) AND (w.app = j.app OR w.app = '*') AND LIVE(w)
    AND RUNS(w, j.name, j.requirements, j.runs)
WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job

-- name: newest_of_job
SELECT x.id FROM execution x
WHERE x.namespace = :namespace AND x.job = :job AND x.id >= :lowest AND x.app = :app AND x.job_version > :base
  AND (CAST(:last AS bigint) IS NULL OR x.job_version <= :last)
ORDER BY x.id DESC LIMIT :most

-- name: recent_executions
SELECT s.id, s.status, s.reason, s.started_at, s.finished_at FROM state s
WHERE s.id AMONG(:ids, uuid) AND s.namespace = :namespace ORDER BY s.id DESC

-- name: schedules_of_jobs
SELECT s.app, s.job, s.id, s.name, s.spec, h.next_at, s.paused_at, s.paused_by, s.paused_note
FROM schedule s CROSS JOIN hand h ON h.schedule = s.id
WHERE s.namespace = :namespace AND s.job AMONG(:jobs, text) AND s.removed_at IS NULL ORDER BY s.app, s.name

-- name: ids_of_jobs
SELECT j.app, j.name, j.id FROM EACH(:jobs, app text, name text) e
CROSS JOIN job j ON j.namespace = :namespace AND j.app = e.app AND j.name = e.name

-- name: versions_listed
SELECT number, definition, source, created_at, created_by, template FROM job_version
WHERE namespace = :namespace AND app = :app AND job = :job AND number > :low AND number < :high
ORDER BY number WAY LIMIT :most

-- name: add_job_version
-- The caller holds the row of the app, so no other transaction takes the same number.
INSERT INTO job_version (namespace, app, job, number, digest, definition, source, created_at, created_by, template)
SELECT :namespace, :app, :job, 1 + coalesce((
           SELECT max(v.number) FROM job_version v
           WHERE v.namespace = :namespace AND v.app = :app AND v.job = :job), 0),
       :digest, :definition, :source, :now, :actor, :template
WHERE NOT EXISTS (
    SELECT 1 FROM job_version v
    WHERE v.namespace = :namespace AND v.app = :app AND v.job = :job AND v.digest = :digest)

-- name: version_with
SELECT number FROM job_version WHERE namespace = :namespace AND app = :app AND job = :job AND digest = :digest

-- name: add_api_job
INSERT INTO job (id, namespace, app, name, version, requirements, pause_after, origin, base, runs, created_at,
                 created_by, updated_at)
VALUES (:id, :namespace, :app, :job, :version, :requirements, :pause_after, 'api', :base, :runs, :now, :actor, :now)

-- name: change_api_job
UPDATE job SET version = :version, requirements = :requirements, pause_after = :pause_after, runs = :runs,
    revision = revision + 1, updated_at = :now
WHERE namespace = :namespace AND app = :app AND name = :job

-- name: bury_job
INSERT INTO deleted_job (id, namespace, app, name, version, base, last, origin, revision, created_at, created_by,
                         deleted_at, deleted_by)
SELECT j.id, j.namespace, j.app, j.name, j.version, j.base, (
           SELECT max(v.number) FROM job_version v
           WHERE v.namespace = j.namespace AND v.app = j.app AND v.job = j.name),
       j.origin, j.revision + 1, j.created_at, j.created_by, :now, :actor
FROM job j WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job;
DELETE FROM job WHERE namespace = :namespace AND app = :app AND name = :job

-- name: bury_versions
-- A job that uses the name again has versions of its own, also with the same content.
UPDATE job_version SET digest = :id || ' ' || digest
WHERE namespace = :namespace AND app = :app AND job = :job AND number > :base

-- name: dependents_of
SELECT app, job FROM dependency
WHERE namespace = :namespace AND upstream_app = :app AND upstream = :job AND NOT (app = :app AND job = :job)
ORDER BY app, job LIMIT :most

-- name: schedules_of_job
SELECT name, origin FROM schedule
WHERE namespace = :namespace AND app = :app AND job = :job AND removed_at IS NULL ORDER BY name

-- name: pending_of_job
-- In the lanes of the job: not started yet, and not steps of runs.
SELECT t.id FROM (
    SELECT r.id, r.lane, r.run FROM ready r UNION ALL SELECT s.id, s.lane, s.run FROM scheduled s
    UNION ALL SELECT w.id, w.lane, w.run FROM waiting w) t
CROSS JOIN lane l ON l.id = t.lane
WHERE l.namespace = :namespace AND l.app = :app AND l.job = :job AND t.run IS NULL ORDER BY t.id LIMIT :most

-- name: template
SELECT name, version, content, created_at, created_by, updated_at FROM template
WHERE namespace = :namespace AND name = :name

-- name: templates_listed
SELECT name, version, content, created_at, created_by, updated_at FROM template
WHERE namespace = :namespace AND (:is_first OR name PAST :name) ORDER BY name WAY LIMIT :most

-- name: put_template
INSERT INTO template (namespace, name, version, content, created_at, created_by, updated_at)
VALUES (:namespace, :name, 1, :content, :now, :actor, :now)
ON CONFLICT (namespace, name) DO UPDATE SET version = template.version + 1, content = excluded.content,
    updated_at = excluded.updated_at

-- name: drop_template
DELETE FROM template WHERE namespace = :namespace AND name = :name
