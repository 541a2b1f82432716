-- The facts for the findings and the overview. Every statement is bounded by the lanes, the queues or a limit.

-- name: lanes_in_use
-- All lanes of a namespace. Ready executions are counted up to a bound.
SELECT l.id, l.app, l.job, l.queue, l.requirements, CASE WHEN q.paused_at IS NULL THEN 0 ELSE 1 END AS paused,
       (SELECT count(*) FROM (SELECT 1 FROM ready r WHERE r.lane = l.id LIMIT :most) counted) AS ready,
       (SELECT x.run_at FROM execution x
        WHERE x.id = (SELECT r.id FROM ready r WHERE r.lane = l.id ORDER BY r.rank, r.id LIMIT 1)) AS oldest_at, l.runs
FROM lane l CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE l.namespace = :namespace ORDER BY l.id

-- name: open_in_lane
-- The first executions that are ready, those that have begun and are to run again, and those claimed a moment ago.
SELECT x.id, x.run_at, x.deadline, n.stuck FROM (
    SELECT a.id, 0 AS stuck FROM (SELECT r.id FROM ready r WHERE r.lane = :lane ORDER BY r.rank, r.id LIMIT :most) a
    UNION ALL
    SELECT b.id, 1 FROM (SELECT s.id FROM scheduled s WHERE s.lane = :lane AND s.reason IS NOT NULL LIMIT :most) b
    UNION ALL
    SELECT c.id, 1 FROM (SELECT r.id FROM running r WHERE r.lane = :lane AND r.started_at > :since LIMIT :most) c) n
CROSS JOIN execution x ON x.id = n.id

-- name: queue_states
SELECT name, paused_at, paused_by, paused_note, policy, max_depth FROM queue WHERE namespace = :namespace ORDER BY name

-- name: minutes_of_lanes
SELECT lane, at, created, success, failed, cancelled + skipped FROM stat
WHERE namespace = :namespace AND step_s = 60 AND at >= :start

-- name: usual_of_lanes
SELECT lane, CAST(sum(success) AS bigint), CAST(sum(failed) AS bigint) FROM stat
WHERE namespace = :namespace AND step_s = 3600 AND at >= :start AND at < :stop AND lane AMONG(:lanes, int) GROUP BY lane

-- name: ended_in_hours
SELECT at, CAST(sum(success) AS bigint), CAST(sum(failed) AS bigint), CAST(sum(cancelled + skipped) AS bigint)
FROM stat WHERE namespace = :namespace AND step_s = 3600 AND at AMONG(:hours, bigint) GROUP BY at

-- name: depths_of_queues
SELECT queue, at, queued FROM stat_sample
WHERE namespace = :namespace AND step_s = 60 AND at >= :start AND queue <> '' AND pool = ''

-- name: error_groups
-- The newest dead letters by job and error. Ids as text: PostgreSQL has no min(uuid).
SELECT n.app, n.job, n.fingerprint, count(*) AS count,
       CAST(sum(CASE WHEN n.failed_at >= :recently THEN 1 ELSE 0 END) AS bigint) AS recent,
       min(n.failed_at) AS first_at, max(n.failed_at) AS last_at, min(n.text) AS first_id, max(n.text) AS last_id,
       min(n.reason) AS reason
FROM (SELECT CAST(d.id AS text) AS text, d.app, d.job, d.fingerprint, d.failed_at, d.reason FROM dead d
      WHERE d.namespace = :namespace ORDER BY d.id DESC LIMIT :most) n
GROUP BY n.app, n.job, n.fingerprint ORDER BY n.app, n.job, n.fingerprint

-- name: errors_of
-- The error and the version of some executions; versions count from 1 for each job of a name.
SELECT x.id, (SELECT f.error FROM finished f WHERE f.id = x.id AND f.final = 1) AS error,
       x.job_version - CASE WHEN x.job_version > j.base THEN j.base ELSE 0 END AS version, v.created_at
FROM execution x LEFT JOIN job j ON j.namespace = x.namespace AND j.app = x.app AND j.name = x.job
LEFT JOIN job_version v ON v.namespace = x.namespace AND v.app = x.app AND v.job = x.job AND v.number = x.job_version
WHERE x.id AMONG(:ids, uuid) AND WITHIN(x.id) AND CAST(x.namespace AS text) = :namespace

-- name: dead_counted
SELECT count(*) FROM (SELECT 1 FROM dead WHERE namespace = :namespace LIMIT :most) counted

-- name: waiting_by_kind
-- How many executions wait in all queues or in one, by job and one of the kinds of their blockers. Open runs are of the
-- kind `run`. Reads at most :most rows.
SELECT c.queue, c.app, c.job, c.kind, CASE WHEN j.paused_at IS NULL THEN 0 ELSE 1 END AS paused, c.count FROM (
    SELECT k.queue, k.app, k.job, k.kind, count(*) AS count FROM (
        SELECT w.queue, w.app, w.job, CASE WHEN n.id IS NOT NULL THEN 'run' ELSE
                   coalesce((SELECT min(b.kind) FROM blocker b WHERE b.execution = w.id), 'dependency') END AS kind
        FROM (SELECT l.queue, l.app, l.job, v.id FROM lane l CROSS JOIN waiting v ON v.lane = l.id
              WHERE l.namespace = :namespace AND (:every OR l.queue = :name) LIMIT :most) w
        LEFT JOIN run n ON n.id = w.id) k
    GROUP BY k.queue, k.app, k.job, k.kind) c
LEFT JOIN job j ON j.namespace = :namespace AND j.app = c.app AND j.name = c.job
ORDER BY c.count DESC, c.app, c.job, c.kind

-- name: pauses_lately
-- Reads the newest rows, up to a bound: most of the trail is about single executions.
SELECT a.action, a.subject, a.at FROM (
    SELECT id, action, subject, at FROM audit WHERE namespace = :namespace ORDER BY id DESC LIMIT :looks) a
WHERE a.at >= :since AND a.action IN ('queue.pause', 'queue.resume', 'job.pause', 'job.resume') ORDER BY a.at, a.id

-- name: later_versions_in_force
-- For those of these jobs whose version in force is not the first one: when it was registered.
SELECT j.app, j.name, j.version - j.base AS version, j.version AS number, v.created_at
FROM EACH(:jobs, app text, job text) e
CROSS JOIN job j ON j.namespace = :namespace AND j.app = e.app AND j.name = e.job AND j.version > j.base + 1
CROSS JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version

-- name: ends_of_version
-- How the first and the newest executions of a version ended, oldest end first.
SELECT f.status, f.finished_at FROM (
    SELECT a.id FROM (SELECT x.id, x.job_version FROM execution x
                      WHERE x.namespace = :namespace AND x.job = :job AND x.app = :app AND x.id >= :lowest
                      ORDER BY x.id LIMIT :looks) a WHERE a.job_version = :number
    UNION
    SELECT b.id FROM (SELECT x.id, x.job_version FROM execution x
                      WHERE x.namespace = :namespace AND x.job = :job AND x.app = :app AND x.id >= :lowest
                      ORDER BY x.id DESC LIMIT :looks) b WHERE b.job_version = :number) n
CROSS JOIN finished f ON f.id = n.id AND f.final = 1 AND f.status IN ('success', 'failed')
ORDER BY f.finished_at, f.id

-- name: job_pauses
SELECT j.app, j.name, j.paused_at, j.paused_by, j.paused_note, (SELECT count(*) FROM (
    SELECT 1 FROM blocker b
    WHERE b.kind = 'job_paused' AND b.key = j.namespace || '/' || j.app || '/' || j.name LIMIT :most) counted) AS waiting
FROM job j WHERE j.paused_at IS NOT NULL AND j.namespace = :namespace ORDER BY j.app, j.name LIMIT :jobs

-- name: ticks_left_out
-- Not of paused schedules.
SELECT s.id, s.app, s.name, s.job, t.outcome, CAST(sum(t.count) AS bigint) AS count,
       CAST(sum(CASE WHEN t.decided_at >= :lately THEN t.count ELSE 0 END) AS bigint) AS lately,
       min(t.at) AS first_at, max(t.until) AS last_at, h.last_outcome, h.last_execution
FROM tick t CROSS JOIN schedule s ON s.id = t.schedule CROSS JOIN hand h ON h.schedule = s.id
WHERE t.execution IS NULL AND t.decided_at >= :since AND s.namespace = :namespace AND s.removed_at IS NULL
  AND s.paused_at IS NULL AND t.outcome IN ('overlap', 'queued', 'missed', 'outside_window', 'unknown_job')
GROUP BY s.id, s.app, s.name, s.job, t.outcome, h.last_outcome, h.last_execution
ORDER BY s.id, t.outcome

-- name: schedules_overdue
SELECT s.id, s.app, s.name, s.job, h.next_at
FROM EACH(:shards, shard int) m CROSS JOIN hand h ON h.shard = m.shard AND h.next_at < :before
CROSS JOIN schedule s ON s.id = h.schedule AND s.namespace = :namespace
ORDER BY h.next_at LIMIT :most

-- name: longest_running
-- With the schedule that started it, and how many of its ticks did not run because this is the last one and still runs.
SELECT o.id, o.app, o.job, o.started_at, o.attempts, n.done, n.total, x.schedule,
       (SELECT CAST(sum(t.count) AS bigint) FROM schedule s CROSS JOIN hand h ON h.schedule = s.id
        CROSS JOIN tick t ON t.schedule = s.id AND t.at > coalesce(x.tick, x.created_at)
        WHERE s.namespace = :namespace AND s.app = o.app AND s.name = x.schedule AND h.last_execution = o.id
          AND t.execution IS NULL AND t.outcome IN ('overlap', 'queued')) AS left_out
FROM (SELECT r.id, r.fence, l.app, l.job, r.started_at, r.attempts FROM running r CROSS JOIN lane l ON l.id = r.lane
      WHERE l.namespace = :namespace AND r.started_at < :before ORDER BY r.started_at LIMIT :most) o
CROSS JOIN execution x ON x.id = o.id LEFT JOIN note n ON n.id = o.id AND n.fence = o.fence
ORDER BY o.started_at

-- name: durations_before
-- How long the successes took among the last executions of a job before one of them.
SELECT f.finished_at - f.started_at AS took FROM (
    SELECT x.id FROM execution x WHERE x.namespace = :namespace AND x.job = :job AND x.app = :app AND x.id < :before
    ORDER BY x.id DESC LIMIT :looks) l
CROSS JOIN finished f ON f.id = l.id AND f.final = 1 AND f.status = 'success' AND f.started_at IS NOT NULL
ORDER BY l.id DESC LIMIT :most

-- name: runs_paused
SELECT n.id, n.app, n.job, n.paused_at, n.paused_by, n.paused_note FROM run n
WHERE n.paused_at IS NOT NULL AND n.namespace = :namespace ORDER BY n.id LIMIT :most

-- name: unanswered
SELECT x.id, x.run, x.app, x.arguments, x.created_at, x.deadline
FROM blocker b CROSS JOIN execution x ON x.id = b.execution
WHERE b.kind = 'approval' AND x.namespace = :namespace
ORDER BY x.id LIMIT :most
