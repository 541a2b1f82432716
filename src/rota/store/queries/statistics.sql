-- name: count_created
INSERT INTO stat_delta (at, lane, count, outcome)
SELECT :now, e.lane, e.count, 'created' FROM EACH(:rows, lane int, count int) e

-- name: add_deltas
INSERT INTO stat_delta (at, lane, count, outcome, run_times, start_latencies, latenesses)
SELECT :now, e.lane, e.count, e.outcome, e.run_times, e.start_latencies, e.latenesses
FROM EACH(:rows, lane int, count int, outcome text, run_times text, start_latencies text, latenesses text) e

-- name: count_ends
-- The executions that have ended alike or are retried, by lane. A step that waits is in the lane of its workflow, whose
-- job is another: nothing runs, and it is not counted. When an execution first started is known only if it was not
-- repeated. The bounds are for the partitions of PostgreSQL.
INSERT INTO stat_delta (at, lane, count, outcome, run_times, start_latencies, latenesses)
SELECT :now, x.lane, count(*), :outcome,
       CAST(LISTING(f.finished_at - f.started_at) FILTER (WHERE f.started_at IS NOT NULL) AS text),
       CAST(LISTING(f.started_at - GREATEST(x.run_at, x.created_at)) FILTER (WHERE f.started_at IS NOT NULL AND f.fence <= 1) AS text),
       CAST(LISTING(f.started_at - x.tick) FILTER (WHERE f.started_at IS NOT NULL AND f.fence <= 1 AND x.tick IS NOT NULL) AS text)
FROM execution x CROSS JOIN lane l ON l.id = x.lane AND l.job = x.job
LEFT JOIN finished f ON f.id = x.id AND f.final = 1 AND f.id >= :lowest AND f.id <= :highest
WHERE x.id AMONG(:ids, uuid) AND x.id >= :lowest AND x.id <= :highest
GROUP BY x.lane

-- name: stat_chore_due
-- Whether there are rows to fold, and whether a sample is due.
SELECT EXISTS (SELECT 1 FROM stat_delta) AS has_deltas,
       EXISTS (SELECT 1 FROM stat_chore WHERE name = 'sample' AND next_at <= :now) AS is_sample_due

-- name: lock_stat_chore
-- No row if another supervisor is doing this, or has done it.
SELECT name FROM stat_chore WHERE name = :name AND next_at <= :now FOR UPDATE SKIP LOCKED

-- name: set_stat_chore
UPDATE stat_chore SET next_at = :next_at WHERE name = :name

-- name: take_deltas @sqlite
SELECT id, at, lane, count, outcome, run_times, start_latencies, latenesses FROM stat_delta ORDER BY id LIMIT :most;
DELETE FROM stat_delta WHERE id AMONG(:returned, bigint)

-- name: take_deltas @postgres
DELETE FROM stat_delta WHERE ctid = ANY(ARRAY(SELECT ctid FROM stat_delta LIMIT :most))
RETURNING 0, at, lane, count, outcome, run_times, start_latencies, latenesses

-- name: stats_at
SELECT s.lane, s.step_s, s.at, s.created, s.success, s.failed, s.cancelled, s.skipped, s.retries,
       s.run_times, s.start_latencies, s.latenesses
FROM EACH(:keys, lane int, step_s int, at bigint) e CROSS JOIN lane l ON l.id = e.lane
CROSS JOIN stat s ON s.namespace = l.namespace AND s.step_s = e.step_s AND s.at = e.at AND s.lane = e.lane

-- name: put_stats
INSERT INTO stat (namespace, lane, step_s, at, created, success, failed, cancelled, skipped, retries,
                  run_times, start_latencies, latenesses)
SELECT l.namespace, e.lane, e.step_s, e.at, e.created, e.success, e.failed, e.cancelled, e.skipped, e.retries,
       e.run_times, e.start_latencies, e.latenesses
FROM EACH(:rows, lane int, step_s int, at bigint, created bigint, success bigint, failed bigint, cancelled bigint, skipped bigint, retries bigint, run_times text, start_latencies text, latenesses text) e
CROSS JOIN lane l ON l.id = e.lane WHERE true
ON CONFLICT (namespace, step_s, at, lane) DO UPDATE SET
    created = excluded.created, success = excluded.success, failed = excluded.failed, cancelled = excluded.cancelled,
    skipped = excluded.skipped, retries = excluded.retries, run_times = excluded.run_times,
    start_latencies = excluded.start_latencies, latenesses = excluded.latenesses

-- name: queued_in_lanes
SELECT l.id, l.namespace, l.queue, l.requirements, (
           SELECT count(*) FROM (SELECT 1 FROM ready r WHERE r.lane = l.id LIMIT :most) counted) AS queued, (
           SELECT x.run_at FROM execution x WHERE x.id = (
               SELECT r.id FROM ready r WHERE r.lane = l.id ORDER BY r.rank, r.id LIMIT 1)) AS oldest_at
FROM lane l

-- name: busy_in_lanes
SELECT r.lane, count(*) AS busy FROM running r GROUP BY r.lane

-- name: slots_of_workers
SELECT n.name, w.queues, w.offers, w.concurrency FROM namespace n CROSS JOIN worker w ON SERVES(w, n.name) WHERE LIVE(w)

-- name: queue_names
SELECT namespace, name FROM queue

-- name: put_samples
INSERT INTO stat_sample (namespace, queue, pool, step_s, at, queued, oldest_age, busy, slots)
SELECT e.namespace, e.queue, e.pool, e.step_s, e.at, e.queued, e.oldest_age, e.busy, e.slots
FROM EACH(:rows, namespace text, queue text, pool text, step_s int, at bigint, queued bigint, oldest_age bigint, busy bigint, slots bigint) e WHERE true
ON CONFLICT (namespace, step_s, at, queue, pool) DO UPDATE SET
    queued = GREATEST(stat_sample.queued, excluded.queued), busy = GREATEST(stat_sample.busy, excluded.busy),
    oldest_age = GREATEST(stat_sample.oldest_age, excluded.oldest_age), slots = GREATEST(stat_sample.slots, excluded.slots)

-- name: drop_stats
DELETE FROM stat WHERE step_s = :step_s AND (namespace, step_s, at, lane) IN (
    SELECT s.namespace, s.step_s, s.at, s.lane FROM stat s WHERE s.step_s = :step_s AND s.at < :bound ORDER BY s.at LIMIT :most)

-- name: drop_samples
DELETE FROM stat_sample WHERE step_s = :step_s AND (namespace, step_s, at, queue, pool) IN (
    SELECT s.namespace, s.step_s, s.at, s.queue, s.pool FROM stat_sample s WHERE s.step_s = :step_s AND s.at < :bound
    ORDER BY s.at LIMIT :most)

-- name: stat_lanes
SELECT id, app, job, queue, requirements FROM lane WHERE namespace = :namespace ORDER BY id

-- name: stat_totals
-- How many executions of each lane were created or ended, to find the largest series.
SELECT s.lane, CAST(sum(s.created + s.success + s.failed + s.cancelled + s.skipped) AS bigint) AS total FROM stat s
WHERE s.namespace = :namespace AND s.step_s = :step_s AND s.at >= :start AND s.at < :stop GROUP BY s.lane

-- name: stat_counts
-- The rows of the time are read once. The lanes are materialised: SQLite would decode them again for each row.
WITH e AS MATERIALIZED (SELECT l.lane, l.series FROM EACH(:lanes, lane int, series int) l)
SELECT e.series, (s.at - :start) / :step AS point, CAST(sum(s.created) AS bigint) AS created,
       CAST(sum(s.success) AS bigint) AS success, CAST(sum(s.failed) AS bigint) AS failed,
       CAST(sum(s.cancelled) AS bigint) AS cancelled, CAST(sum(s.skipped) AS bigint) AS skipped,
       CAST(sum(s.retries) AS bigint) AS retries
FROM stat s CROSS JOIN e ON e.lane = s.lane
WHERE s.namespace = :namespace AND s.step_s = :step_s AND s.at >= :start AND s.at < :stop
GROUP BY e.series, (s.at - :start) / :step

-- name: stat_counts_of_all
-- All lanes as one series.
SELECT 0 AS series, (s.at - :start) / :step AS point, CAST(sum(s.created) AS bigint) AS created,
       CAST(sum(s.success) AS bigint) AS success, CAST(sum(s.failed) AS bigint) AS failed,
       CAST(sum(s.cancelled) AS bigint) AS cancelled, CAST(sum(s.skipped) AS bigint) AS skipped,
       CAST(sum(s.retries) AS bigint) AS retries
FROM stat s WHERE s.namespace = :namespace AND s.step_s = :step_s AND s.at >= :start AND s.at < :stop
GROUP BY (s.at - :start) / :step

-- name: stat_times
-- The histograms of all rows, separated by commas: Python adds them up faster than JSON functions do.
WITH e AS MATERIALIZED (SELECT l.lane, l.series FROM EACH(:lanes, lane int, series int) l)
SELECT e.series, (s.at - :start) / :step AS point, TEXTS(s.run_times, ',') FILTER (WHERE :run_time) AS run_times,
       TEXTS(s.start_latencies, ',') FILTER (WHERE :start_latency) AS start_latencies,
       TEXTS(s.latenesses, ',') FILTER (WHERE :lateness) AS latenesses
FROM stat s CROSS JOIN e ON e.lane = s.lane
WHERE s.namespace = :namespace AND s.step_s = :step_s AND s.at >= :start AND s.at < :stop
GROUP BY e.series, (s.at - :start) / :step

-- name: stat_times_of_all
SELECT 0 AS series, (s.at - :start) / :step AS point, TEXTS(s.run_times, ',') FILTER (WHERE :run_time) AS run_times,
       TEXTS(s.start_latencies, ',') FILTER (WHERE :start_latency) AS start_latencies,
       TEXTS(s.latenesses, ',') FILTER (WHERE :lateness) AS latenesses
FROM stat s WHERE s.namespace = :namespace AND s.step_s = :step_s AND s.at >= :start AND s.at < :stop
GROUP BY (s.at - :start) / :step

-- name: unfolded_counts
SELECT d.lane, d.at - d.at % 60000000 AS minute, d.outcome, CAST(sum(d.count) AS bigint) AS count
FROM stat_delta d CROSS JOIN lane l ON l.id = d.lane
WHERE l.namespace = :namespace AND d.at >= :start AND d.at < :stop
GROUP BY d.lane, d.at - d.at % 60000000, d.outcome

-- name: unfolded_times
SELECT d.lane, d.at - d.at % 60000000 AS minute, d.run_times, d.start_latencies, d.latenesses
FROM stat_delta d CROSS JOIN lane l ON l.id = d.lane
WHERE l.namespace = :namespace AND d.at >= :start AND d.at < :stop AND d.outcome NOT IN ('created', 'retries')

-- name: stat_samples
-- The highest sample of each queue or pool in each interval.
SELECT s.queue, s.pool, (s.at - :start) / :step AS point, max(s.queued) AS queued, max(s.oldest_age) AS oldest_age,
       max(s.busy) AS busy, max(s.slots) AS slots
FROM stat_sample s
WHERE s.namespace = :namespace AND s.step_s = :step_s AND s.at >= :start AND s.at < :stop
  AND (s.queue <> '') = :by_queue AND (s.pool <> '') = :by_pool
GROUP BY s.queue, s.pool, (s.at - :start) / :step
