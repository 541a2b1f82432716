-- Dead letters by the fingerprints of their errors.

-- name: letters_of_error
SELECT d.id, d.app, d.job, d.failed_at, d.reason FROM dead d
WHERE d.namespace = :namespace AND d.fingerprint = :fingerprint ORDER BY d.id WAY LIMIT :most

-- name: error_trends
-- How many of the newest letters of each error came in each interval.
SELECT e.fingerprint, (l.value - e.start) / e.step AS place, count(*) AS count
FROM EACH(:spans, fingerprint text, start bigint, step bigint) e CROSS JOIN LATERAL[
    SELECT d.failed_at AS value FROM dead d WHERE d.namespace = :namespace AND d.fingerprint = e.fingerprint
    ORDER BY d.id DESC LIMIT :most] l ON true
GROUP BY e.fingerprint, (l.value - e.start) / e.step

-- name: fingerprint_of
SELECT fingerprint FROM dead WHERE id = :id AND namespace = :namespace

-- name: error_versions
-- The versions of some executions of one job; versions count from 1 for each job of a name.
SELECT x.job_version - CASE WHEN x.job_version > j.base THEN j.base ELSE 0 END AS version, count(*) AS count
FROM execution x LEFT JOIN job j ON j.namespace = x.namespace AND j.app = x.app AND j.name = x.job
WHERE x.id AMONG(:ids, uuid) AND WITHIN(x.id)
GROUP BY x.job_version - CASE WHEN x.job_version > j.base THEN j.base ELSE 0 END ORDER BY 1 DESC

-- name: versions_registered
SELECT v.number - CASE WHEN v.number > j.base THEN j.base ELSE 0 END AS version, v.created_at
FROM job_version v LEFT JOIN job j ON j.namespace = v.namespace AND j.app = v.app AND j.name = v.job
WHERE v.namespace = :namespace AND v.app = :app AND v.job = :job ORDER BY v.number DESC LIMIT :most

-- name: versions_before
-- The versions of a job before one of them, newest first, with the version in force.
SELECT j.origin, j.version - j.base, v.number - j.base, v.digest
FROM job j CROSS JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name
WHERE j.namespace = :namespace AND j.app = :app AND j.name = :job
  AND v.number > j.base AND v.number < j.base + CAST(:first AS integer) ORDER BY v.number DESC LIMIT :most

-- name: last_success_before
SELECT f.id, f.finished_at FROM (
    SELECT x.id FROM execution x WHERE x.namespace = :namespace AND x.job = :job AND x.app = :app AND x.id < :before
    ORDER BY x.id DESC LIMIT :looks) l
CROSS JOIN finished f ON f.id = l.id AND f.final = 1 AND f.status = 'success' ORDER BY f.id DESC LIMIT 1
