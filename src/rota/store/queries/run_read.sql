-- name: runs
SELECT t.id, t.namespace, t.app, t.job, coalesce(n.version, o.version, t.job_version) AS version,
       coalesce(v.digest, '') AS graph, t.status, t.reason, t.created_at, t.run_at, t.tick, t.started_at, t.finished_at,
       t.run AS parent, t.step AS parent_step, t.map_index AS parent_item, t.replay_of,
       coalesce(n.letters, o.letters, '') AS letters, n.stopping, n.deadline, n.paused_at, n.paused_by, n.paused_note,
       (SELECT f.error FROM finished f WHERE f.id = t.id AND f.final = 1) AS error,
       coalesce(n.undo, o.undo) AS undo, coalesce(n.undo_of, o.undo_of) AS undo_of, coalesce(j.base, d.base, 0) AS base
FROM state t LEFT JOIN run n ON n.id = t.id LEFT JOIN run_ended o ON o.id = t.id
LEFT JOIN job_version v ON v.namespace = t.namespace AND v.app = t.app AND v.job = t.job
    AND v.number = coalesce(n.version, o.version, t.job_version)
LEFT JOIN job j ON j.namespace = t.namespace AND j.app = t.app AND j.name = t.job AND j.base < v.number
LEFT JOIN deleted_job d ON d.namespace = t.namespace AND d.name = t.job AND d.app = t.app
    AND d.base < v.number AND d.last >= v.number
WHERE t.id AMONG(:ids, uuid) AND t.namespace = :namespace
ORDER BY t.id DESC

-- name: page_of_runs
-- The runs of one workflow up to `:end`; with a status, only those that have ended with it.
SELECT x.id FROM execution x
WHERE x.job = :job AND x.id PAST :before AND x.id UNTIL :end AND x.namespace = :namespace
  AND (CAST(:app AS text) IS NULL OR x.app = :app) AND x.created_at >= :since AND x.created_at < :until
  AND (:nested = 1 OR x.run IS NULL)
  AND (CAST(:status AS text) IS NULL
       OR EXISTS (SELECT 1 FROM finished f WHERE f.id = x.id AND f.final = 1 AND f.status = :status))
ORDER BY x.id WAY LIMIT :most

-- name: end_of_budget
-- The last execution of the next `:budget` ones of a job, if there are that many.
SELECT e.id FROM execution e WHERE e.job = :job AND e.id PAST :before AND e.namespace = :namespace
ORDER BY e.id WAY LIMIT 1 OFFSET :budget - 1

-- name: page_of_open_runs
SELECT n.id FROM run n CROSS JOIN execution x ON x.id = n.id
WHERE n.id PAST :before AND n.namespace = :namespace
  AND (CAST(:app AS text) IS NULL OR n.app = :app) AND x.created_at >= :since AND x.created_at < :until
  AND (CAST(:job AS text) IS NULL OR n.job = :job) AND (CAST(:parent AS uuid) IS NULL OR n.parent = :parent)
  AND (:nested = 1 OR n.parent IS NULL)
  AND (:status = 'running' OR :status = 'paused' AND n.paused_at IS NOT NULL
       OR :status = 'stopping' AND n.stopping IS NOT NULL OR :status = 'undoing' AND n.undo IS NOT NULL
       OR :status = 'unanswered'
          AND EXISTS (SELECT 1 FROM blocker b WHERE b.kind = 'approval' AND b.key = CAST(n.id AS text)))
ORDER BY n.id WAY LIMIT :most

-- name: page_of_pending_runs
SELECT x.id FROM (
    SELECT id FROM ready WHERE :status = 'queued'
    UNION ALL SELECT id FROM waiting w WHERE :status = 'waiting' AND NOT EXISTS (SELECT 1 FROM run n WHERE n.id = w.id)
    UNION ALL SELECT id FROM scheduled WHERE :status = CASE WHEN attempts > 0 THEN 'retrying' ELSE 'scheduled' END
) t CROSS JOIN execution x ON x.id = t.id
WHERE t.id PAST :before AND x.namespace = :namespace AND x.job AMONG(:jobs, text) AND (:nested = 1 OR x.run IS NULL)
  AND (CAST(:app AS text) IS NULL OR x.app = :app) AND x.created_at >= :since AND x.created_at < :until
ORDER BY t.id WAY LIMIT :most

-- name: page_of_steps
-- The executions of a run, or of one of its steps.
SELECT s.execution FROM step s
WHERE s.run = :run AND s.execution PAST :before AND (CAST(:number AS int) IS NULL OR s.number = :number)
  AND (CAST(:status AS text) IS NULL OR (SELECT t.status FROM state t WHERE t.id = s.execution) = :status)
ORDER BY s.execution WAY LIMIT :most

-- name: runs_between
SELECT id FROM (
    SELECT id FROM run WHERE id >= :lowest AND id <= :highest AND namespace = :namespace
    UNION ALL SELECT o.id FROM run_ended o CROSS JOIN execution x ON x.id = o.id
    WHERE o.id >= :lowest AND o.id <= :highest AND x.namespace = :namespace) found
ORDER BY id DESC LIMIT :most

-- name: states_of_steps
-- `arguments` and `result` only for steps that wait: their `job` ends with parentheses, and the values are small.
SELECT t.id, t.status, t.reason, t.attempts, t.fence, t.created_at, t.due_at,
       coalesce((SELECT min(f.started_at) FROM finished f WHERE f.id = t.id), t.started_at) AS started_at,
       t.finished_at, (SELECT f.error FROM finished f WHERE f.id = t.id ORDER BY f.fence DESC LIMIT 1) AS error,
       coalesce(n.letters, o.letters) AS letters, t.job,
       CASE WHEN t.job LIKE '%()' THEN t.arguments END AS arguments, t.deadline,
       CASE WHEN t.job LIKE '%()' THEN (SELECT f.result FROM finished f WHERE f.id = t.id AND f.final = 1) END AS result
FROM state t LEFT JOIN run n ON n.id = t.id LEFT JOIN run_ended o ON o.id = t.id
WHERE t.id AMONG(:ids, uuid)

-- name: ends_of_items
-- No bounds on the ids: with bounds, PostgreSQL may read all steps for each row of `finished` in that range.
-- `kept` is 1 for items that a retry took from an earlier run.
-- The last column is the end of the last item in milliseconds, with the number of that item in the lowest 20 bits.
SELECT e.number, e.status, e.kept, count(*), min(e.started_at), max(e.finished_at),
       max(e.finished_at / 1000 * 1048576 + e.item)
FROM (SELECT s.number, s.item, f.status, f.started_at, f.finished_at,
             CASE WHEN (SELECT x.run FROM execution x WHERE x.id = s.execution) = s.run THEN 0 ELSE 1 END AS kept
      FROM step s CROSS JOIN finished f ON f.id = s.execution AND f.final = 1
      WHERE s.run = :run AND s.number AMONG(:numbers, int)) e
GROUP BY e.number, e.status, e.kept

-- name: first_item
-- The first item of a map that this run has placed itself.
SELECT s.execution FROM step s CROSS JOIN execution x ON x.id = s.execution AND x.run = s.run
WHERE s.run = :run AND s.number = :number ORDER BY s.item LIMIT 1

-- name: bad_items
-- In the order of the items. `|| ''` keeps PostgreSQL from using the index on `status`, with which it would read all
-- steps for each row of `finished` that has this status.
SELECT s.item, s.execution, f.status, f.reason, f.attempts, f.error,
       (SELECT x.map_index FROM execution x WHERE x.id = s.execution) AS map_index
FROM step s CROSS JOIN finished f ON f.id = s.execution AND f.final = 1
WHERE s.run = :run AND s.number = :number AND f.status || '' = :status ORDER BY s.item LIMIT :most

-- name: running_items
-- How many executions of each step have a worker; of a sub-workflow, how many are open.
SELECT number, count(*) FROM (
    SELECT x.step AS number FROM running u CROSS JOIN execution x ON x.id = u.id WHERE u.run = :run
    UNION ALL SELECT parent_step AS number FROM run WHERE parent = :run) found
GROUP BY number

-- name: place_in_run
SELECT x.run, x.step, x.map_index FROM execution x WHERE x.id = :id AND x.namespace = :namespace AND x.run IS NOT NULL
