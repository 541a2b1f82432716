-- Statistics. They are counted in the transactions that create and end executions, so they do not depend on how long the
-- history is kept.

-- What one transaction has created or ended: one row for each lane and outcome. Rows are only appended, so no two
-- transactions wait for each other. `outcome` is a final status, `created` or `retries`. The times are JSON: a histogram
-- as in `stat`, or an array of microseconds. Upkeep adds the rows to `stat` and deletes them (ops/statistics.py).
CREATE TABLE stat_delta (
    id              INTEGER PRIMARY KEY,
    at              INTEGER NOT NULL,
    lane            INTEGER NOT NULL,
    count           INTEGER NOT NULL,
    outcome         TEXT NOT NULL,
    run_times       TEXT,
    start_latencies TEXT,
    latenesses      TEXT
);

-- One row for each lane and minute and for each lane and five minutes (kept for 48 hours), and for each lane and hour
-- (kept for 400 days). The times are histograms: JSON objects of counts by bucket (domain/statistics.py).
-- The columns of the key come first: with another order, the integrity check of SQLite 3.40 reports nulls that are not
-- there.
CREATE TABLE stat (
    namespace       TEXT NOT NULL,
    step_s          INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    lane            INTEGER NOT NULL,
    created         INTEGER NOT NULL,
    success         INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    cancelled       INTEGER NOT NULL,
    skipped         INTEGER NOT NULL,
    retries         INTEGER NOT NULL,
    run_times       TEXT NOT NULL,
    start_latencies TEXT NOT NULL,
    latenesses      TEXT NOT NULL,
    PRIMARY KEY (namespace, step_s, at, lane)
) WITHOUT ROWID;
CREATE INDEX stat_old ON stat (step_s, at);

-- Samples of each namespace, taken once a minute: of each queue (`pool` is empty), of each pool (`queue` is empty), and
-- of all together (both are empty). The row of an hour has the highest value of each column.
CREATE TABLE stat_sample (
    namespace  TEXT NOT NULL,
    step_s     INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    queue      TEXT NOT NULL,
    pool       TEXT NOT NULL,
    queued     INTEGER NOT NULL,
    -- Microseconds.
    oldest_age INTEGER NOT NULL,
    busy       INTEGER NOT NULL,
    slots      INTEGER NOT NULL,
    PRIMARY KEY (namespace, step_s, at, queue, pool)
) WITHOUT ROWID;
CREATE INDEX stat_sample_old ON stat_sample (step_s, at);

-- The locks for these chores: one supervisor at a time does each of them.
CREATE TABLE stat_chore (
    name    TEXT PRIMARY KEY,
    next_at INTEGER NOT NULL
) WITHOUT ROWID;
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
