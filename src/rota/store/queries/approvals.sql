-- name: page_of_approvals
SELECT x.id FROM execution x WHERE x.namespace = :namespace AND x.job = :job AND x.id PAST :before
ORDER BY x.id WAY LIMIT :most

-- name: page_of_open_approvals
SELECT x.id FROM blocker b CROSS JOIN execution x ON x.id = b.execution
WHERE b.kind = 'approval' AND (CAST(:run AS text) IS NULL OR b.key = :run) AND x.id PAST :before AND x.namespace = :namespace
ORDER BY x.id WAY LIMIT :most

-- name: approvals
SELECT x.id, x.app, x.run, x.step, x.arguments, x.created_at, x.deadline, f.status, f.result, f.finished_at
FROM execution x LEFT JOIN finished f ON f.id = x.id AND f.final = 1
WHERE x.id AMONG(:ids, uuid) AND x.namespace = :namespace AND x.job = :job
