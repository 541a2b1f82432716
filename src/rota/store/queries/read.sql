-- name: executions
-- Columns that may be large are read only if they are asked for. A job that has the name of a deleted one continues its
-- version numbers: the job of an execution is the one with its version, and the shown numbers count from 1 for each job.
SELECT s.id, s.namespace, s.app, s.job, s.job_version - coalesce(j.base, d.base, 0) AS job_version, s.queue, s.priority,
       s.actor, CASE WHEN :with_arguments THEN s.arguments ELSE 'null' END AS arguments, s.key, s.created_at, s.run_at,
       s.deadline, s.parent, s.replay_of, s.tags, s.status, s.reason, s.fence, s.attempts, s.crashes, s.due_at,
       s.started_at, s.finished_at, s.cancel_at, w.name AS worker, w.id AS worker_id, w.heartbeat_at,
       CASE WHEN :with_error THEN (
           SELECT f.error FROM finished f WHERE f.id = s.id ORDER BY f.fence DESC LIMIT 1) END AS error,
       coalesce(j.id, d.id) AS job_id, s.schedule, s.tick, s.catch_up,
       CASE WHEN :with_headers THEN s.headers END AS headers, s.overrides, s.run, s.step, s.map_index, s.upstream,
       s.event, CASE WHEN :with_arguments THEN s.inputs END AS inputs,
       CASE WHEN :with_result THEN (
           SELECT f.result FROM finished f WHERE f.id = s.id AND f.final = 1) END AS result
FROM state s LEFT JOIN worker w ON w.id = s.worker
LEFT JOIN job j ON j.namespace = s.namespace AND j.app = s.app AND j.name = s.job AND j.base < s.job_version
LEFT JOIN deleted_job d ON d.namespace = s.namespace AND d.name = s.job AND d.app = s.app
    AND d.base < s.job_version AND d.last >= s.job_version
WHERE s.id AMONG(:ids, uuid) AND WITHIN(s.id) AND CAST(s.namespace AS text) = :namespace
ORDER BY s.id DESC

-- name: attempts
SELECT f.id, f.fence, f.final, f.status, f.reason, f.attempts, f.crashes, w.name AS worker, f.started_at, f.finished_at,
       f.result, f.error, f.usage, w.id AS worker_id,
       coalesce((SELECT p.attempts FROM finished p WHERE p.id = f.id AND p.fence < f.fence ORDER BY p.fence DESC LIMIT 1), 0)
           + 1 AS number
FROM finished f CROSS JOIN execution x ON x.id = f.id LEFT JOIN worker w ON w.id = f.worker
WHERE f.id = :id AND x.namespace = :namespace AND f.fence PAST :after ORDER BY f.fence WAY LIMIT :most

-- name: ending
-- Returns nulls for an execution that has not ended.
SELECT f.status, f.reason, f.result, f.error, x.app, x.job, f.attempts
FROM execution x LEFT JOIN finished f ON f.id = :id AND f.final = 1
WHERE x.id = :id AND x.namespace = :namespace

-- name: ends_of_runs
SELECT f.id, x.job, f.status, f.reason, f.result, f.error
FROM finished f CROSS JOIN execution x ON x.id = f.id
WHERE f.id AMONG(:ids, uuid) AND f.final = 1

-- name: replayed_as
SELECT replayed_as FROM finished WHERE id = :id AND final = 1

-- name: exists
SELECT 1 FROM execution WHERE id = :id AND namespace = :namespace

-- name: ids_between
-- The cast keeps SQLite from reading all ids of the namespace in the index execution_job.
SELECT id FROM execution WHERE id >= :lowest AND id <= :highest AND CAST(namespace AS text) = :namespace
ORDER BY id DESC LIMIT :most

-- name: ids_ending
-- No index has the ends of ids: the newest ids of each table are read from its index. Without an order, because that
-- would make PostgreSQL read all executions in that order.
WITH newest AS (SELECT id FROM (SELECT id FROM execution ORDER BY id DESC LIMIT :newest) a
     UNION ALL SELECT id FROM (SELECT id FROM dead ORDER BY id DESC LIMIT :newest) f
     UNION ALL SELECT id FROM (SELECT id FROM running ORDER BY id DESC LIMIT :newest) b
     UNION ALL SELECT id FROM (SELECT id FROM ready ORDER BY id DESC LIMIT :newest) c
     UNION ALL SELECT id FROM (SELECT id FROM waiting ORDER BY id DESC LIMIT :newest) d
     UNION ALL SELECT id FROM (SELECT id FROM scheduled ORDER BY id DESC LIMIT :newest) e)
SELECT x.id FROM newest n CROSS JOIN execution x ON x.id = n.id
WHERE CAST(n.id AS text) LIKE :pattern AND x.namespace = :namespace

-- name: dead_letters
SELECT d.id, d.app, d.job, d.queue, d.reason, d.failed_at, f.error
FROM dead d CROSS JOIN finished f ON f.id = d.id AND f.final = 1
WHERE d.namespace = :namespace AND d.id < :before AND (CAST(:app AS text) IS NULL OR d.app = :app)
  AND (CAST(:job AS text) IS NULL OR d.job = :job) AND (CAST(:queue AS text) IS NULL OR d.queue = :queue) AND (CAST(:reason AS text) IS NULL OR d.reason = :reason)
  AND (CAST(:since AS bigint) IS NULL OR d.failed_at >= :since) AND (CAST(:error AS text) IS NULL OR FOUND(lower(f.error), lower(:error)) > 0)
ORDER BY d.id DESC LIMIT :most

-- name: queues
SELECT q.name, q.policy, q.max_depth, q.paused_at, q.paused_by, q.paused_note,
       (SELECT count(*) FROM lane l CROSS JOIN ready r ON r.lane = l.id
        WHERE l.namespace = q.namespace AND l.queue = q.name) AS queued,
       (SELECT count(*) FROM scheduled s JOIN lane l ON l.id = s.lane
        WHERE l.namespace = q.namespace AND l.queue = q.name) AS scheduled,
       (SELECT count(*) FROM running r JOIN lane l ON l.id = r.lane
        WHERE l.namespace = q.namespace AND l.queue = q.name)
       + (SELECT count(*) FROM run n CROSS JOIN waiting w ON w.id = n.id CROSS JOIN lane l ON l.id = w.lane
          WHERE l.namespace = q.namespace AND l.queue = q.name) AS running,
       (SELECT count(*) FROM waiting w JOIN lane l ON l.id = w.lane
        WHERE l.namespace = q.namespace AND l.queue = q.name
          AND NOT EXISTS (SELECT 1 FROM run n WHERE n.id = w.id)) AS waiting,
       (SELECT min(x.run_at) FROM lane l
        CROSS JOIN execution x ON x.id = (SELECT r.id FROM ready r WHERE r.lane = l.id ORDER BY r.rank, r.id LIMIT 1)
        WHERE l.namespace = q.namespace AND l.queue = q.name) AS oldest_at,
       (SELECT count(*) FROM dead d WHERE d.namespace = q.namespace AND d.queue = q.name) AS dead,
       q.revision
FROM queue q WHERE q.namespace = :namespace AND (:every OR q.name = :name) ORDER BY q.name

-- name: workers
SELECT w.id, w.app, w.name, w.host, w.pid, w.version, w.offers, w.queues, w.concurrency, w.state, w.started_at, w.heartbeat_at,
       w.lease_until, w.stopped_at, coalesce(r.count, 0) AS running, w.supervisor, w.least, w.most, w.trouble, w.deploy,
       w.jobs, w.beats, w.ended, w.memory
FROM worker w LEFT JOIN (SELECT worker, count(*) AS count FROM running GROUP BY worker) r ON r.worker = w.id
WHERE SERVES(w, :namespace) AND (w.stopped_at IS NULL OR w.stopped_at >= :since) ORDER BY w.id

-- name: clock
SELECT CAST(:now AS bigint)

-- name: database @sqlite
SELECT 'SQLite ' || sqlite_version()

-- name: database @postgres
SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)

-- name: claim_facts
-- Reads the values that the conditions of a claim depend on.
SELECT s.status, s.app, s.queue, s.reason, s.due_at, q.paused_at, q.paused_by, q.paused_note,
       (SELECT count(*) FROM worker w
        WHERE SERVES(w, s.namespace) AND (w.app = s.app OR (w.app = '*' AND RUNS(w, s.job, j.requirements, j.runs))) AND LIVE(w)
          AND (w.queues = 'null' OR LISTED(s.queue, w.queues))) AS live_workers,
       (SELECT CAST(LISTING(v.offers) AS text) || '' FROM (
            SELECT DISTINCT w.offers FROM worker w
            WHERE SERVES(w, s.namespace) AND (w.app = s.app OR w.app = '*') AND LIVE(w)
              AND (w.queues = 'null' OR LISTED(s.queue, w.queues)) AND RUNS(w, s.job, j.requirements, j.runs)) v) AS offers,
       (SELECT l.requirements FROM execution x JOIN lane l ON l.id = x.lane WHERE x.id = s.id) AS requirements,
       (SELECT count(*) FROM (
            SELECT 1 FROM ready m CROSS JOIN lane o ON o.id = m.lane
            CROSS JOIN lane l ON l.namespace = o.namespace AND l.app = o.app AND l.queue = o.queue
                AND l.requirements = o.requirements
            CROSS JOIN ready r ON r.lane = l.id AND (r.rank, r.id) < (m.rank, m.id)
            WHERE m.id = s.id LIMIT :most) counted) AS ahead,
       s.cancel_at, (SELECT w.lease_until FROM worker w WHERE w.id = s.worker) AS lease_until,
       (SELECT CAST(LISTING(PAIR(b.name, b.retry_at)) AS text) || '' FROM breaker b
        WHERE b.namespace = s.namespace AND b.opened_at IS NOT NULL) AS circuits,
       s.job, j.paused_at AS job_paused_at, j.paused_by AS job_paused_by, j.paused_note AS job_paused_note,
       (SELECT CAST(LISTING(PAIR(v.offers, v.trouble)) AS text) || '' FROM (
            SELECT DISTINCT w.offers, coalesce(w.trouble, '{}') AS trouble FROM worker w
            WHERE SERVES(w, s.namespace) AND (w.app = s.app OR w.app = '*') AND LIVE(w)
              AND (w.queues = 'null' OR LISTED(s.queue, w.queues)) AND RUNS(w, s.job, j.requirements, j.runs)) v) AS troubles,
       (SELECT CAST(LISTING(PAIR(b.kind, b.key || coalesce((
            SELECT '/' || d.outcome FROM dependency d
            WHERE b.kind = 'dependency' AND d.namespace = s.namespace AND d.app = s.app AND d.job = s.job
              AND b.key = d.namespace || '/' || d.app || '/' || d.job || '/' || d.upstream_app || '/' || d.upstream),
            ''))) AS text) || '' FROM blocker b WHERE b.execution = s.id) AS blockers, s.id
FROM state s LEFT JOIN queue q ON q.namespace = s.namespace AND q.name = s.queue
LEFT JOIN job j ON j.namespace = s.namespace AND j.app = s.app AND j.name = s.job
WHERE s.id AMONG(:ids, uuid) AND s.namespace = :namespace

-- name: newest
SELECT GREATEST(coalesce((SELECT created_at FROM execution ORDER BY id DESC LIMIT 1), 0),
           coalesce((SELECT max(heartbeat_at) FROM worker), 0)) AS at

-- name: dead_count
SELECT count(*) FROM dead WHERE namespace = :namespace

