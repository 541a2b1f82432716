-- Statistics. They are counted in the transactions that create and end executions, so they do not depend on how long the
-- history is kept.

-- What one transaction has created or ended: one row for each lane and outcome. Rows are only appended, so no two
-- transactions wait for each other. `outcome` is a final status, `created` or `retries`. The times are JSON: a histogram
-- as in `stat`, or an array of microseconds. Upkeep adds the rows to `stat` and deletes them (ops/statistics.py).
CREATE TABLE stat_delta (
    at              bigint NOT NULL,
    lane            integer NOT NULL,
    count           integer NOT NULL,
    outcome         text NOT NULL,
    run_times       text,
    start_latencies text,
    latenesses      text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_threshold = -1);

-- One row for each lane and minute and for each lane and five minutes (kept for 48 hours), and for each lane and hour
-- (kept for 400 days). The times are histograms: JSON objects of counts by bucket (domain/statistics.py).
CREATE TABLE stat (
    at              bigint NOT NULL,
    step_s          integer NOT NULL,
    lane            integer NOT NULL,
    created         bigint NOT NULL,
    success         bigint NOT NULL,
    failed          bigint NOT NULL,
    cancelled       bigint NOT NULL,
    skipped         bigint NOT NULL,
    retries         bigint NOT NULL,
    namespace       text NOT NULL,
    run_times       text NOT NULL,
    start_latencies text NOT NULL,
    latenesses      text NOT NULL,
    PRIMARY KEY (namespace, step_s, at, lane)
) WITH (fillfactor = 70);
CREATE INDEX stat_old ON stat (step_s, at);

-- Samples of each namespace, taken once a minute: of each queue (`pool` is empty), of each pool (`queue` is empty), and
-- of all together (both are empty). The row of an hour has the highest value of each column.
CREATE TABLE stat_sample (
    at         bigint NOT NULL,
    step_s     integer NOT NULL,
    queued     bigint NOT NULL,
    -- Microseconds.
    oldest_age bigint NOT NULL,
    busy       bigint NOT NULL,
    slots      bigint NOT NULL,
    namespace  text NOT NULL,
    queue      text NOT NULL,
    pool       text NOT NULL,
    PRIMARY KEY (namespace, step_s, at, queue, pool)
) WITH (fillfactor = 70);
CREATE INDEX stat_sample_old ON stat_sample (step_s, at);

-- The locks for these chores: one supervisor at a time does each of them.
CREATE TABLE stat_chore (
    name    text PRIMARY KEY,
    next_at bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO stat_chore (name, next_at) VALUES ('fold', 0), ('sample', 0);

-- The statistics of deleted executions become rows of hours.
INSERT INTO stat (at, step_s, lane, created, success, failed, cancelled, skipped, retries, namespace, run_times,
                  start_latencies, latenesses)
SELECT s.hour, 3600, l.id, 0, sum(CASE s.status WHEN 'success' THEN s.executions ELSE 0 END),
       sum(CASE s.status WHEN 'failed' THEN s.executions ELSE 0 END),
       sum(CASE s.status WHEN 'cancelled' THEN s.executions ELSE 0 END),
       sum(CASE s.status WHEN 'skipped' THEN s.executions ELSE 0 END), 0, s.namespace, '{}', '{}', '{}'
FROM summary s
JOIN (SELECT min(id) AS id, namespace, app, job, queue FROM lane GROUP BY namespace, app, job, queue) l
    ON l.namespace = s.namespace AND l.app = s.app AND l.job = s.job AND l.queue = s.queue
GROUP BY s.hour, l.id, s.namespace;
DROP TABLE summary;

-- The SQL function `enqueue` counts what it creates, too.
DO $do$
DECLARE
    before  CONSTANT text := pg_get_functiondef('enqueue'::regproc);
    counted CONSTANT text := replace(before, '    IF enqueue.notify THEN',
        '    INSERT INTO stat_delta (at, lane, count, outcome) VALUES (now_us, lane, 1, ''created'');'
        || chr(10) || '    IF enqueue.notify THEN');
BEGIN
    ASSERT counted <> before, 'the function enqueue is not the one that this migration knows';
    EXECUTE counted;
END
$do$;
