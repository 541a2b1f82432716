-- name: workflows_in_force
SELECT j.id, j.app, j.name, j.version, j.base, NULL AS last, j.origin, j.revision, j.runs, j.paused_at, j.paused_by,
       j.paused_note, j.created_at, j.created_by, j.updated_at, NULL AS deleted_at, v.definition, v.source,
       v.template
FROM job j JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
WHERE j.namespace = :namespace AND j.requirements = :workflow

-- name: open_runs_by_workflow
SELECT app, job, count(*) FROM run WHERE namespace = :namespace GROUP BY app, job

-- name: definitions_of_app
SELECT v.definition FROM job j
JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
WHERE j.namespace = :namespace AND j.app = :app
