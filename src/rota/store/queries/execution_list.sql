-- Lists of executions. A list is merged from heads: index ranges that are each in the order of ids. A statement reads on
-- from where each head has arrived (`after`).

-- name: heads_of_jobs
HEADS(text, execution x WHERE x.namespace = :namespace AND x.job = h.head)

-- name: heads_of_tags
HEADS(text, tag x WHERE x.namespace = :namespace AND x.tag = h.head)

-- name: heads_of_parents
HEADS(uuid, execution x WHERE x.parent = h.head)

-- name: heads_of_replays
HEADS(uuid, execution x WHERE x.replay_of = h.head)

-- name: heads_of_runs
-- The parent of a step is its run, and there is an index for parents.
HEADS(uuid, execution x WHERE x.parent = h.head AND x.run = h.head)

-- name: heads_of_dead
HEADS(text, dead x WHERE x.namespace = h.head)

-- name: heads_of_dead_jobs
HEADS(text, dead x WHERE x.namespace = :namespace AND x.job = h.head)

-- name: heads_of_fingerprints
HEADS(text, dead x WHERE x.namespace = :namespace AND x.fingerprint = h.head)

-- name: heads_of_statuses
-- Of all namespaces.
HEADS(text, finished x WHERE x.final = 1 AND x.status <> 'success' AND x.status = h.head)

-- name: heads_of_all
-- Of all namespaces.
HEADS(text, execution x WHERE true)

-- name: heads_of_ready
HEADS(text, ready x WHERE true)

-- name: heads_of_running
HEADS(text, running x WHERE true)

-- name: heads_of_open_runs
HEADS(text, run x WHERE true)

-- name: heads_of_scheduled
HEADS(text, scheduled x WHERE true)

-- name: heads_of_waiting
HEADS(text, waiting x WHERE true)

-- name: heads_of_lanes
-- Ready executions by rank. The position of a lane is a rank and an id.
SELECT h.lane, e.value FROM EACH(:heads, lane int, rank bigint, after uuid) h CROSS JOIN LATERAL[
    SELECT CAST(x.rank AS text) || ' ' || CAST(x.id AS text) AS value FROM ready x
    WHERE x.lane = h.lane AND (x.rank, x.id) PAST (h.rank, h.after)
    ORDER BY x.rank WAY, x.id WAY LIMIT :most] e ON true

-- name: jobs_with_lanes
-- The jobs that may have executions, deleted ones too.
SELECT DISTINCT job FROM lane WHERE namespace = :namespace LIMIT :most

-- name: lanes_in_queue
SELECT id FROM lane WHERE namespace = :namespace AND queue = :queue

-- name: few_left
-- How many executions of these jobs are left, counted up to a bound.
SELECT count(*) FROM (
    HEADS(text, execution x WHERE x.namespace = :namespace AND x.job = h.head)
    LIMIT :most) counted

-- name: few_ready
SELECT r.id FROM lane l CROSS JOIN ready r ON r.lane = l.id WHERE l.namespace = :namespace LIMIT :most

-- name: few_waiting
SELECT w.id FROM lane l CROSS JOIN waiting w ON w.lane = l.id WHERE l.namespace = :namespace LIMIT :most

-- name: holders_of_keys
SELECT k.holder FROM (SELECT DISTINCT app, job FROM lane WHERE namespace = :namespace) j
CROSS JOIN unique_key k ON k.namespace = :namespace AND k.app = j.app AND k.job = j.job AND k.kind = :kind
    AND k.key AMONG(:keys, text)

-- name: workers_named
SELECT w.id FROM worker w WHERE SERVES(w, :namespace) AND w.name AMONG(:names, text) LIMIT :most

-- name: jobs_with_ids
SELECT app, name FROM job WHERE namespace = :namespace AND id AMONG(:ids, uuid)

-- name: schedules_with_ids
SELECT app, name FROM schedule WHERE namespace = :namespace AND id AMONG(:ids, bigint)

-- name: ids_of_schedules
SELECT app, name, id FROM schedule WHERE namespace = :namespace AND name AMONG(:names, text) AND removed_at IS NULL

-- name: matching
-- The cast keeps SQLite from reading all ids of the namespace in the index execution_job.
-- Which of these executions match by their fixed columns. A job or a schedule is given as `name` or as `app/name`.
SELECT x.id FROM execution x
WHERE x.id AMONG(:ids, uuid) AND WITHIN(x.id) AND CAST(x.namespace AS text) = :namespace
  AND (:any_job OR x.job AMONG(:jobs, text) OR x.app || '/' || x.job AMONG(:jobs, text))
  AND (:any_app OR x.app AMONG(:apps, text)) AND (:any_queue OR x.queue AMONG(:queues, text))
  AND (:any_actor OR x.actor AMONG(:actors, text)) AND (:any_key OR x.key AMONG(:keys, text))
  AND (:any_schedule OR x.schedule AMONG(:schedules, text) OR x.app || '/' || x.schedule AMONG(:schedules, text))
  AND (:any_run OR x.run AMONG(:runs, uuid)) AND (:any_parent OR x.parent AMONG(:parents, uuid))
  AND (:any_replay OR x.replay_of AMONG(:replays, uuid))
  AND (CAST(:created_from AS bigint) IS NULL OR x.created_at >= :created_from)
  AND (CAST(:created_to AS bigint) IS NULL OR x.created_at < :created_to)
  AND (:any_tag OR NOT EXISTS (SELECT 1 FROM EACH(:tags, tag text) t WHERE NOT EXISTS (
      SELECT 1 FROM tag g WHERE g.namespace = x.namespace AND g.tag = t.tag AND g.id = x.id)))
ORDER BY x.id DESC

-- name: matching_state
-- Which of these executions match by their state.
SELECT s.id FROM state s
WHERE s.id AMONG(:ids, uuid) AND WITHIN(s.id) AND CAST(s.namespace AS text) = :namespace
  AND (:any_status OR s.status AMONG(:statuses, text)) AND (:any_reason OR s.reason AMONG(:reasons, text))
  AND (:any_worker OR s.worker AMONG(:workers, bigint))
  AND (:any_fingerprint OR EXISTS (
      SELECT 1 FROM dead d WHERE d.id = s.id AND d.fingerprint AMONG(:fingerprints, text)))
  AND (:any_dead OR EXISTS (SELECT 1 FROM dead d WHERE d.id = s.id) = :is_dead)
  AND (CAST(:error AS text) IS NULL OR FOUND(lower((
      SELECT f.error FROM finished f WHERE f.id = s.id ORDER BY f.fence DESC LIMIT 1)), lower(:error)) > 0)
  AND (:any_error_type OR EXISTS (SELECT 1 FROM EACH(:error_types, start text) t WHERE FOUND((
      SELECT f.error FROM finished f WHERE f.id = s.id ORDER BY f.fence DESC LIMIT 1), t.start) = 1))
ORDER BY s.id DESC

-- name: matching_end
-- Which of these executions have ended with one of these statuses.
SELECT f.id FROM finished f WHERE f.id AMONG(:ids, uuid) AND WITHIN(f.id) AND f.final = 1 AND f.status AMONG(:statuses, text)

-- name: other_namespaces
-- One row if another namespace may have executions.
SELECT 1 FROM lane WHERE namespace <> :namespace LIMIT 1

-- name: counted_of_jobs
-- How many executions each of these jobs has, counted up to a bound, and the newest one.
SELECT h.head, (SELECT count(*) FROM (
           SELECT 1 FROM execution x
           WHERE x.namespace = :namespace AND x.job = h.head LIMIT :most) c) AS counted,
       (SELECT x.id FROM execution x WHERE x.namespace = :namespace AND x.job = h.head
        ORDER BY x.id DESC LIMIT 1) AS newest
FROM EACH(:heads, head text) h

-- name: values_to_count
SELECT s.id, s.queue, s.reason, s.created_at, s.job, s.status, d.fingerprint,
       CASE WHEN :with_error THEN (
           SELECT f.error FROM finished f WHERE f.id = s.id ORDER BY f.fence DESC LIMIT 1) END AS error
FROM state s LEFT JOIN dead d ON d.id = s.id
WHERE s.id AMONG(:ids, uuid) AND WITHIN(s.id) AND CAST(s.namespace AS text) = :namespace

-- name: letters_to_count
SELECT d.id, d.queue, d.reason, d.failed_at AS created_at, d.job, 'failed' AS status, d.fingerprint, NULL AS error FROM dead d
WHERE d.id AMONG(:ids, uuid) AND d.id >= :lowest AND d.id <= :highest AND d.namespace = :namespace

-- name: events_to_count
SELECT e.emitted_at FROM event e
WHERE e.namespace = :namespace AND e.name = :name AND e.emitted_at >= :low AND e.emitted_at < :high
  AND (CAST(:subject AS text) IS NULL OR e.subject = :subject)
LIMIT :most

-- name: newest_events_to_count
-- No index has the events of one namespace: the newest events of all namespaces are read.
SELECT e.emitted_at, CASE WHEN e.namespace = :namespace AND e.emitted_at >= :low AND e.emitted_at < :high
    AND (CAST(:subject AS text) IS NULL OR e.subject = :subject) THEN 1 ELSE 0 END AS matches
FROM (SELECT id, namespace, subject, emitted_at FROM event ORDER BY id DESC LIMIT :most) e

-- name: search_names
SELECT t.kind, t.app, t.name, t.id FROM (
    SELECT CASE WHEN j.requirements = :workflow THEN 'workflow' ELSE 'job' END AS kind, j.app, j.name,
           CAST(j.id AS text) AS id
    FROM job j WHERE j.namespace = :namespace AND FOUND(lower(j.name), :part) > 0
    UNION ALL
    SELECT 'queue', NULL, q.name, q.name FROM queue q
    WHERE q.namespace = :namespace AND FOUND(lower(q.name), :part) > 0
    UNION ALL
    SELECT 'schedule', s.app, s.name, CAST(s.id AS text) FROM schedule s
    WHERE s.namespace = :namespace AND s.removed_at IS NULL AND FOUND(lower(s.name), :part) > 0
    UNION ALL
    SELECT 'worker', w.app, w.name, CAST(w.id AS text) FROM worker w
    WHERE SERVES(w, :namespace) AND w.stopped_at IS NULL AND FOUND(lower(w.name), :part) > 0) t
ORDER BY FOUND(lower(t.name), :part), length(t.name), t.name, t.kind, t.id LIMIT :most

-- name: states_to_count
SELECT s.status, s.created_at FROM state s
WHERE s.id AMONG(:ids, uuid) AND WITHIN(s.id) AND CAST(s.namespace AS text) = :namespace
