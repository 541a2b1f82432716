-- name: takers
-- The live workers that can run a job, with what they offer and the queues that they serve.
SELECT w.id, w.offers, w.queues, j.requirements FROM job j
CROSS JOIN worker w ON SERVES(w, j.namespace) AND (w.app = j.app OR w.app = '*') AND LIVE(w)
    AND RUNS(w, j.name, j.requirements, j.runs)
WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job

-- name: jobs_named
-- Jobs by name, or the one with this id.
SELECT j.id, j.app, j.name, v.definition, v.source, j.base FROM job j
JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
WHERE j.namespace = :namespace AND j.name = :name ORDER BY j.app

-- name: job_of_id
SELECT j.id, j.app, j.name, v.definition, v.source, j.base FROM job j
JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
WHERE j.id = :id AND j.namespace = :namespace
