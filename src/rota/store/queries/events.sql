-- name: add_events
INSERT INTO event (id, namespace, name, subject, key, actor, payload, emitted_at, replay_of)
SELECT id, :namespace, name, subject, key, :actor, payload, :now, replay_of
FROM EACH(:rows, id uuid, name text, subject text, key text, payload text, replay_of uuid) e

-- name: open_events
INSERT INTO event_open (event, after, is_replay)
SELECT event, after, :is_replay FROM EACH(:rows, event uuid, after text) e WHERE true
ON CONFLICT (event) DO UPDATE SET after = excluded.after, is_replay = excluded.is_replay

-- name: subscribed_names
SELECT e.name FROM EACH(:names, name text) e
WHERE EXISTS (SELECT 1 FROM subscription s WHERE s.namespace = :namespace AND s.name = e.name)

-- name: subscriptions_of
-- The first ones after subscriber `after`. Two ranges of the primary key: without a subject, and with this subject.
SELECT name, subscriber, since_at, app, job, execution, filter, target FROM (
    SELECT * FROM (
        SELECT name, subscriber, since_at, app, job, execution, filter, target FROM subscription
        WHERE namespace = :namespace AND name = :name AND subject = '' AND subscriber > :after
        ORDER BY subscriber LIMIT :most) without_subject
    UNION ALL
    SELECT * FROM (
        SELECT name, subscriber, since_at, app, job, execution, filter, target FROM subscription
        WHERE namespace = :namespace AND name = :name AND subject = :subject AND subscriber > :after
          AND CAST(:subject AS text) <> ''
        ORDER BY subscriber LIMIT :most) with_subject) s
ORDER BY subscriber LIMIT :most

-- name: delivered
SELECT d.event, d.subscriber FROM EACH(:rows, event uuid, subscriber text) e
CROSS JOIN delivery d ON d.event = e.event AND d.subscriber = e.subscriber

-- name: add_deliveries
INSERT INTO delivery (event, subscriber, execution, at)
SELECT event, subscriber, execution, :now FROM EACH(:rows, event uuid, subscriber text, execution uuid) e

-- name: routes
SELECT e.app, e.job, e.queue, j.version, l.id, q.policy, q.max_depth,
       EXISTS (SELECT 1 FROM dependency d
               WHERE d.namespace = j.namespace AND d.app = j.app AND d.job = j.name) AS depends
FROM EACH(:jobs, app text, job text, queue text) e
CROSS JOIN job j ON j.namespace = :namespace AND j.app = e.app AND j.name = e.job
CROSS JOIN lane l ON l.namespace = j.namespace AND l.app = j.app AND l.job = j.name AND l.queue = e.queue
    AND l.requirements = j.requirements
CROSS JOIN queue q ON q.namespace = j.namespace AND q.name = e.queue

-- name: next_open_event
-- An event that no other transaction is delivering.
SELECT o.event, o.after, o.is_replay FROM event_open o ORDER BY o.event LIMIT 1 FOR UPDATE OF o SKIP LOCKED

-- name: lock_open_event
SELECT o.event, o.after, o.is_replay FROM event_open o WHERE o.event = :event FOR UPDATE OF o

-- name: move_open_event
UPDATE event_open SET after = :after WHERE event = :event

-- name: close_event
DELETE FROM event_open WHERE event = :event

-- name: events_named
SELECT id, namespace, name, subject, payload, emitted_at FROM event WHERE id AMONG(:ids, uuid)

-- name: subscriptions_of_app
-- Of the jobs of its code.
SELECT s.name, s.subscriber, s.since_at, s.app, s.job, s.execution, s.filter, s.target FROM subscription s
WHERE s.namespace = :namespace AND s.app = :app AND NOT EXISTS (
    SELECT 1 FROM job j WHERE j.namespace = s.namespace AND j.app = s.app AND j.name = s.job AND j.origin = 'api')
ORDER BY s.name, s.subscriber

-- name: subscriptions_of_job
SELECT name, subscriber, since_at, app, job, execution, filter, target FROM subscription
WHERE namespace = :namespace AND app = :app AND job = :job ORDER BY name, subscriber

-- name: put_subscriptions
INSERT INTO subscription (namespace, name, subject, subscriber, since_at, app, job, filter, target, unsure)
SELECT :namespace, name, '', subscriber, since_at, :app, job, filter, target, NULL
FROM EACH(:rows, name text, subscriber text, since_at bigint, job text, filter text, target text) e WHERE true
ON CONFLICT (namespace, name, subject, subscriber) DO UPDATE SET filter = excluded.filter, target = excluded.target

-- name: drop_subscriptions
DELETE FROM subscription WHERE namespace = :namespace AND subject = '' AND (name, subscriber) IN (
    SELECT name, subscriber FROM EACH(:rows, name text, subscriber text) e)

-- name: add_waits
-- `unsure` gets its default: 0 on PostgreSQL, NULL on SQLite.
INSERT INTO subscription (namespace, name, subject, subscriber, since_at, execution, filter, target)
SELECT :namespace, name, :subject, subscriber, since_at, execution, filter, target
FROM EACH(:rows, name text, subscriber text, since_at bigint, app text, job text, execution uuid, filter text, target text) e

-- name: drop_waits
DELETE FROM subscription WHERE execution AMONG(:ids, uuid)

-- name: events_of_names
SELECT id, namespace, name, subject, payload, emitted_at FROM event
WHERE namespace = :namespace AND name AMONG(:names, text) AND id >= :low AND (emitted_at, id) > (:at, :id)
ORDER BY emitted_at, id LIMIT :most

-- name: events_of_subject
SELECT id, namespace, name, subject, payload, emitted_at FROM event
WHERE namespace = :namespace AND name AMONG(:names, text) AND subject = :subject AND subject <> '' AND id >= :low
  AND (emitted_at, id) > (:at, :id)
ORDER BY emitted_at, id LIMIT :most

-- name: unsure_waits @sqlite
-- Finds none: SQLite has one writer, so `unsure` is always NULL.
SELECT name, subscriber, since_at, app, job, execution, filter, target, namespace, subject, unsure
FROM subscription WHERE unsure IS NOT NULL LIMIT :most

-- name: unsure_waits @postgres
-- Waits that are new (0), and waits whose mark the xmin of this statement's snapshot has reached. The limit counts waits,
-- not subscriptions: a wait takes the earliest event of all its names, so its subscriptions are read together. They have
-- the same mark, because they are inserted and marked together.
SELECT s.name, s.subscriber, s.since_at, s.app, s.job, s.execution, s.filter, s.target, s.namespace, s.subject, s.unsure
FROM subscription s
WHERE s.unsure IS NOT NULL AND s.subscriber IN (
    SELECT DISTINCT w.subscriber FROM subscription w
    WHERE w.unsure IS NOT NULL AND w.unsure <= CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)
    ORDER BY w.subscriber LIMIT :most)
ORDER BY s.subscriber

-- name: note_waits @sqlite
UPDATE subscription SET unsure = NULL WHERE unsure IS NOT NULL

-- name: note_waits @postgres
-- The mark is the id of this transaction.
UPDATE subscription SET unsure = CASE WHEN e.is_sure THEN NULL ELSE CAST(CAST(pg_current_xact_id() AS text) AS bigint) END
FROM EACH(:rows, subscriber text, before bigint, is_sure boolean) e
WHERE subscription.subscriber = e.subscriber AND subscription.unsure = e.before

-- name: events
-- Up to `:end`.
SELECT e.id, e.name, e.subject, e.key, e.actor, e.payload, e.emitted_at, e.replay_of,
       (SELECT count(*) FROM delivery d WHERE d.event = e.id) AS delivered,
       (SELECT count(*) FROM event_open o WHERE o.event = e.id) AS is_open
FROM event e
WHERE e.namespace = :namespace AND e.id PAST :before AND e.id UNTIL :end
  AND (CAST(:name AS text) IS NULL OR e.name = :name) AND (CAST(:subject AS text) IS NULL OR e.subject = :subject)
  AND e.emitted_at >= :since AND e.emitted_at < :until
ORDER BY e.id WAY LIMIT :most

-- name: end_of_events_budget
-- The last of the next `:budget` events, if there are that many.
SELECT e.id FROM event e WHERE e.namespace = :namespace AND e.id PAST :before ORDER BY e.id WAY LIMIT 1 OFFSET :budget - 1

-- name: event_of
SELECT e.id, e.name, e.subject, e.key, e.actor, e.payload, e.emitted_at, e.replay_of,
       (SELECT count(*) FROM delivery d WHERE d.event = e.id) AS delivered,
       (SELECT count(*) FROM event_open o WHERE o.event = e.id) AS is_open
FROM event e WHERE e.namespace = :namespace AND e.id = :id

-- name: event_ids
SELECT id FROM event WHERE namespace = :namespace AND id >= :low AND id <= :high ORDER BY id DESC LIMIT :most

-- name: deliveries_of
-- Retention may have deleted the execution. SQLite computes the whole view for a LEFT JOIN with it.
WITH d AS MATERIALIZED (
    SELECT execution, at, subscriber FROM delivery WHERE event = :event ORDER BY at, subscriber LIMIT :most)
SELECT execution, at, app, job, run, step, status FROM (
    SELECT d.execution, d.at, d.subscriber, s.app, s.job, s.run, s.step, s.status
    FROM d CROSS JOIN state s ON s.id = d.execution
    UNION ALL
    SELECT d.execution, d.at, d.subscriber, NULL, NULL, NULL, NULL, NULL
    FROM d WHERE NOT EXISTS (SELECT 1 FROM execution x WHERE x.id = d.execution)) e
ORDER BY at, subscriber

-- name: all_subscriptions
SELECT name, subject, app, job, execution, since_at, filter, target FROM subscription
WHERE namespace = :namespace AND (CAST(:name AS text) IS NULL OR name = :name)
ORDER BY CASE WHEN execution IS NULL THEN 0 ELSE 1 END, name, subscriber LIMIT :most
