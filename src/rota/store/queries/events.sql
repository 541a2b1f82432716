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
-- Those behind `after`, in the order of the subscribers. Two ranges of the key: without a subject, and with this one.
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
-- One that no other transaction works on.
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
SELECT name, subscriber, since_at, app, job, execution, filter, target FROM subscription
WHERE namespace = :namespace AND app = :app ORDER BY name, subscriber

-- name: put_subscriptions
INSERT INTO subscription (namespace, name, subject, subscriber, since_at, app, job, filter, target, unsure)
SELECT :namespace, name, '', subscriber, since_at, :app, job, filter, target, NULL
FROM EACH(:rows, name text, subscriber text, since_at bigint, job text, filter text, target text) e WHERE true
ON CONFLICT (namespace, name, subject, subscriber) DO UPDATE SET filter = excluded.filter, target = excluded.target

-- name: drop_subscriptions
DELETE FROM subscription WHERE namespace = :namespace AND subject = '' AND (name, subscriber) IN (
    SELECT name, subscriber FROM EACH(:rows, name text, subscriber text) e)

-- name: add_waits
-- On PostgreSQL `unsure` has a default.
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
-- SQLite has one writer: no wait is unsure.
SELECT name, subscriber, since_at, app, job, execution, filter, target, namespace, subject, unsure
FROM subscription WHERE unsure IS NOT NULL LIMIT :most

-- name: unsure_waits @postgres
-- Those that are new, and those whose mark the snapshot of this statement has reached.
SELECT s.name, s.subscriber, s.since_at, s.app, s.job, s.execution, s.filter, s.target, s.namespace, s.subject, s.unsure
FROM subscription s
WHERE s.unsure IS NOT NULL
  AND s.unsure <= CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)
ORDER BY s.subscriber LIMIT :most

-- name: note_waits @sqlite
UPDATE subscription SET unsure = NULL WHERE unsure IS NOT NULL

-- name: note_waits @postgres
-- A wait for several names may be in two batches, so the name counts. The mark is the id of this transaction.
UPDATE subscription SET unsure = CASE WHEN e.is_sure THEN NULL ELSE CAST(CAST(pg_current_xact_id() AS text) AS bigint) END
FROM EACH(:rows, subscriber text, name text, before bigint, is_sure boolean) e
WHERE subscription.subscriber = e.subscriber AND subscription.name = e.name AND subscription.unsure = e.before

-- name: events
SELECT e.id, e.name, e.subject, e.key, e.actor, e.payload, e.emitted_at, e.replay_of,
       (SELECT count(*) FROM delivery d WHERE d.event = e.id) AS delivered,
       (SELECT count(*) FROM event_open o WHERE o.event = e.id) AS is_open
FROM event e
WHERE e.namespace = :namespace AND e.id < :before AND (CAST(:name AS text) IS NULL OR e.name = :name)
  AND (CAST(:subject AS text) IS NULL OR e.subject = :subject) AND e.emitted_at >= :since
ORDER BY e.id DESC LIMIT :most

-- name: event_of
SELECT e.id, e.name, e.subject, e.key, e.actor, e.payload, e.emitted_at, e.replay_of,
       (SELECT count(*) FROM delivery d WHERE d.event = e.id) AS delivered,
       (SELECT count(*) FROM event_open o WHERE o.event = e.id) AS is_open
FROM event e WHERE e.namespace = :namespace AND e.id = :id

-- name: event_ids
SELECT id FROM event WHERE namespace = :namespace AND id >= :low AND id <= :high ORDER BY id DESC LIMIT :most

-- name: deliveries_of
SELECT d.execution, d.at, s.app, s.job, s.run, s.step, s.status
FROM (SELECT execution, at, subscriber FROM delivery WHERE event = :event ORDER BY at, subscriber LIMIT :most) d
LEFT JOIN state s ON s.id = d.execution ORDER BY d.at, d.subscriber

-- name: all_subscriptions
SELECT name, subject, app, job, execution, since_at, filter, target FROM subscription
WHERE namespace = :namespace AND (CAST(:name AS text) IS NULL OR name = :name)
ORDER BY CASE WHEN execution IS NULL THEN 0 ELSE 1 END, name, subscriber LIMIT :most
