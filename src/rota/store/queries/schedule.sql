-- name: due_schedules @sqlite
-- `:shards` has a time limit for each shard: now for the caller's own, and earlier for those of other supervisors,
-- whose ticks it takes only if they are late. The order of the shards changes with each call, so no shard starves.
-- Sorting all due rows for each batch is too slow.
SELECT s.id, h.shard, s.namespace, s.app, s.name, s.spec, h.revision, h.cursor, h.next_at, h.last_execution, h.held
FROM EACH(:shards, shard int, until bigint) m CROSS JOIN hand h ON h.shard = m.shard AND h.next_at <= m.until
CROSS JOIN schedule s ON s.id = h.schedule
LIMIT :most

-- name: due_schedules @postgres
-- A few of each shard, so that a full shard does not delay the others. A `hand` row is read after it is locked, its
-- schedule as of the start of the statement: if the revisions differ, the next call finds the schedule.
SELECT s.id, h.shard, s.namespace, s.app, s.name, s.spec, h.revision, h.cursor, h.next_at, h.last_execution, h.held
FROM EACH(:shards, shard int, until bigint) m CROSS JOIN LATERAL (
    SELECT d.schedule, d.shard, d.revision, d.cursor, d.next_at, d.last_execution, d.held
    FROM hand d WHERE d.shard = m.shard AND d.next_at <= m.until
    ORDER BY d.next_at LIMIT :each FOR UPDATE SKIP LOCKED) h ON true
JOIN schedule s ON s.id = h.schedule AND s.revision = h.revision LIMIT :most

-- name: unfinished
SELECT e.id FROM EACH(:ids, id uuid) e
WHERE EXISTS (SELECT 1 FROM running u WHERE u.id = e.id) OR EXISTS (SELECT 1 FROM ready r WHERE r.id = e.id)
   OR EXISTS (SELECT 1 FROM scheduled s WHERE s.id = e.id) OR EXISTS (SELECT 1 FROM waiting w WHERE w.id = e.id)

-- name: add_ticks
-- The primary key (schedule, at) makes a tick happen once.
INSERT INTO tick (schedule, at, until, count, decided_at, execution, outcome)
SELECT schedule, at, at, 1, :now, execution, outcome
FROM EACH(:rows, schedule bigint, at bigint, execution uuid, outcome text) e WHERE true
ON CONFLICT DO NOTHING

-- name: ticks_taken
SELECT t.execution FROM EACH(:rows, schedule bigint, at bigint, execution uuid, outcome text) e
CROSS JOIN tick t ON t.schedule = e.schedule AND t.at = e.at AND t.execution = e.execution

-- name: add_marks
INSERT INTO tick (schedule, at, until, count, decided_at, outcome)
SELECT schedule, at, until, count, :now, outcome
FROM EACH(:rows, schedule bigint, at bigint, until bigint, count bigint, outcome text) e WHERE true
ON CONFLICT DO NOTHING

-- name: ticks_held
SELECT t.schedule, t.at, t.decided_at FROM EACH(:rows, schedule bigint, at bigint) e
CROSS JOIN tick t ON t.schedule = e.schedule AND t.at = e.at

-- name: release_ticks
UPDATE tick SET outcome = e.outcome, execution = e.execution, decided_at = :now
FROM EACH(:rows, schedule bigint, at bigint, outcome text, execution uuid) e
WHERE tick.schedule = e.schedule AND tick.at = e.at

-- name: move_schedules
UPDATE hand SET cursor = e.cursor, next_at = e.next_at, waits_for = e.waits_for, held = e.held,
    last_at = coalesce(e.last_at, hand.last_at), last_late = coalesce(e.last_late, hand.last_late),
    last_outcome = coalesce(e.last_outcome, hand.last_outcome),
    last_execution = coalesce(e.last_execution, hand.last_execution)
FROM EACH(:rows, id bigint, revision bigint, cursor bigint, next_at bigint, waits_for uuid, held text, last_at bigint, last_late bigint, last_outcome text, last_execution uuid) e
WHERE hand.schedule = e.id AND hand.revision = e.revision

-- name: postpone_schedules
UPDATE hand SET next_at = :until WHERE schedule AMONG(:ids, bigint)

-- name: wake_followers
UPDATE hand SET next_at = :now + coalesce(delay, 0), waits_for = NULL
WHERE waits_for AMONG(:ids, uuid)
RETURNING next_at

-- name: forgotten_followers
SELECT s.waits_for FROM hand s
WHERE s.waits_for IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM running u WHERE u.id = s.waits_for)
  AND NOT EXISTS (SELECT 1 FROM ready r WHERE r.id = s.waits_for)
  AND NOT EXISTS (SELECT 1 FROM scheduled d WHERE d.id = s.waits_for)
  AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.id = s.waits_for)
LIMIT :most

-- name: declared_schedules
SELECT id, name, spec FROM schedule
WHERE namespace = :namespace AND app = :app AND origin = 'code' AND removed_at IS NULL ORDER BY name FOR UPDATE

-- name: schedules_named
SELECT s.id, s.name, s.origin, s.spec, h.cursor, h.held, s.paused_at
FROM schedule s CROSS JOIN hand h ON h.schedule = s.id
WHERE s.namespace = :namespace AND s.app = :app AND s.name AMONG(:names, text) AND s.removed_at IS NULL
ORDER BY s.name FOR UPDATE

-- name: add_schedules
INSERT INTO schedule (created_at, updated_at, namespace, app, name, job, origin, spec)
SELECT :now, :now, :namespace, :app, name, job, :origin, spec
FROM EACH(:rows, name text, job text, spec text, shard int, cursor bigint, next_at bigint, delay bigint) e WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO hand (schedule, revision, cursor, next_at, delay, shard)
SELECT (SELECT s.id FROM schedule s
        WHERE s.name = e.name AND s.app = :app AND s.namespace = :namespace AND s.removed_at IS NULL),
       1, e.cursor, e.next_at, e.delay, e.shard
FROM EACH(:rows, name text, job text, spec text, shard int, cursor bigint, next_at bigint, delay bigint) e WHERE true
ON CONFLICT DO NOTHING

-- name: change_schedules
-- A new expression starts from now. A `hand` row is changed only together with its schedule: another transaction may
-- have added the schedule between the two statements.
UPDATE schedule SET updated_at = :now, revision = revision + 1, job = e.job, spec = e.spec, origin = :origin
FROM EACH(:rows, name text, job text, spec text, shard int, cursor bigint, next_at bigint, delay bigint) e
WHERE schedule.namespace = :namespace AND schedule.app = :app AND schedule.name = e.name AND removed_at IS NULL;
WITH m AS MATERIALIZED (
    SELECT s.id, s.paused_at, s.revision, e.shard, e.cursor, e.next_at, e.delay
    FROM EACH(:rows, name text, job text, spec text, shard int, cursor bigint, next_at bigint, delay bigint) e
    CROSS JOIN schedule s ON s.namespace = :namespace AND s.app = :app AND s.name = e.name AND s.removed_at IS NULL)
UPDATE hand SET cursor = m.cursor, revision = hand.revision + 1, delay = m.delay, shard = m.shard, held = '[]',
    next_at = CASE WHEN m.paused_at IS NULL THEN m.next_at END, waits_for = NULL
FROM m WHERE hand.schedule = m.id AND hand.revision + 1 = m.revision

-- name: remove_schedules
DELETE FROM hand WHERE schedule IN (
    SELECT id FROM schedule
    WHERE namespace = :namespace AND app = :app AND name AMONG(:names, text) AND removed_at IS NULL);
UPDATE schedule SET removed_at = :now, updated_at = :now, revision = revision + 1
WHERE namespace = :namespace AND app = :app AND name AMONG(:names, text) AND removed_at IS NULL

-- name: pause_schedule
UPDATE schedule SET paused_at = :now, paused_by = :actor, paused_note = :note, updated_at = :now,
    revision = revision + 1
WHERE id = :id;
UPDATE hand SET next_at = NULL, waits_for = NULL, held = '[]', cursor = :cursor, revision = revision + 1
WHERE schedule = :id

-- name: resume_schedule
UPDATE schedule SET paused_at = NULL, paused_by = NULL, paused_note = NULL, updated_at = :now, revision = revision + 1
WHERE id = :id;
UPDATE hand SET next_at = :next_at, cursor = :cursor, held = '[]', revision = revision + 1 WHERE schedule = :id

-- name: schedules
SELECT s.id, s.namespace, s.app, s.name, s.job, s.origin, s.spec, h.cursor, h.next_at, s.paused_at, s.paused_by,
       s.paused_note, h.last_at, h.last_late, h.last_outcome, h.last_execution, h.waits_for, h.held, s.created_at,
       s.updated_at, s.removed_at, s.revision
FROM schedule s CROSS JOIN hand h ON h.schedule = s.id
WHERE s.namespace = :namespace AND s.removed_at IS NULL AND (:all_apps OR s.app = :app)
ORDER BY s.app, s.name LIMIT :most

-- name: schedules_called
-- Schedules with this name, or of a job with this name.
SELECT s.id, s.namespace, s.app, s.name, s.job, s.origin, s.spec, h.cursor, h.next_at, s.paused_at, s.paused_by,
       s.paused_note, h.last_at, h.last_late, h.last_outcome, h.last_execution, h.waits_for, h.held, s.created_at,
       s.updated_at, s.removed_at, s.revision
FROM schedule s CROSS JOIN hand h ON h.schedule = s.id
WHERE s.id IN (
    SELECT n.id FROM schedule n WHERE n.name = :name AND n.namespace = :namespace AND n.removed_at IS NULL
    UNION SELECT j.id FROM schedule j WHERE j.job = :name AND j.namespace = :namespace AND j.removed_at IS NULL)
  AND (:all_apps OR s.app = :app)

-- name: schedule_called
SELECT s.id, s.namespace, s.app, s.name, s.job, s.origin, s.spec, h.cursor, h.next_at, s.paused_at, s.paused_by,
       s.paused_note, h.last_at, h.last_late, h.last_outcome, h.last_execution, h.waits_for, h.held, s.created_at,
       s.updated_at, s.removed_at, s.revision
FROM schedule s CROSS JOIN hand h ON h.schedule = s.id
WHERE s.name = :name AND s.app = :app AND s.namespace = :namespace AND s.removed_at IS NULL

-- name: schedules_by_id
SELECT s.id, s.namespace, s.app, s.name, s.job, s.origin, s.spec, h.cursor, h.next_at, s.paused_at, s.paused_by,
       s.paused_note, h.last_at, h.last_late, h.last_outcome, h.last_execution, h.waits_for, h.held, s.created_at,
       s.updated_at, s.removed_at, s.revision
FROM schedule s CROSS JOIN hand h ON h.schedule = s.id
WHERE s.id AMONG(:ids, bigint) AND s.namespace = :namespace AND s.removed_at IS NULL

-- name: lock_schedule
-- Before its state is read again: a write may depend on it.
SELECT revision FROM schedule WHERE id = :id AND removed_at IS NULL FOR UPDATE

-- name: schedules_listed
SELECT id, name, app, job, origin, paused_at FROM schedule
WHERE namespace = :namespace AND removed_at IS NULL AND (name, app) PAST (:name, :app)
ORDER BY name WAY, app WAY LIMIT :most

-- name: ledgers_called
-- Apps that have a schedule of this name, or had one.
SELECT DISTINCT app, name FROM schedule WHERE name = :name AND namespace = :namespace ORDER BY app

-- name: ledger_of
SELECT app, name FROM schedule WHERE id = :id AND namespace = :namespace

-- name: due_together
-- Other schedules of the namespace that are due at the same instant.
SELECT s.spec FROM EACH(:shards, shard int) m CROSS JOIN hand h ON h.shard = m.shard AND h.next_at = :at
CROSS JOIN schedule s ON s.id = h.schedule AND s.namespace = :namespace AND s.id <> :id
LIMIT :most

-- name: schedules_ever
-- All schedules of that name, including removed ones: they share one ledger.
SELECT id FROM schedule WHERE name = :name AND app = :app AND namespace = :namespace

-- name: ticks_of
-- `range_of` finds the range that began before `low`.
SELECT t.schedule, t.at, t.until, t.count, t.decided_at, t.execution, t.outcome,
       coalesce(f.status, t.ended) AS status, f.reason
FROM tick t LEFT JOIN finished f ON f.id = t.execution AND f.final = 1
WHERE t.schedule = :schedule AND t.at >= :low AND t.at <= :high ORDER BY t.at WAY LIMIT :most

-- name: tick_sums
-- The newest `most` rows by outcome: how many rows, and how many ticks.
SELECT n.outcome, count(*), sum(n.count) FROM (
    SELECT t.outcome, t.count FROM tick t
    WHERE t.schedule = :schedule AND t.at >= :low AND t.at <= :high ORDER BY t.at DESC LIMIT :most) n
GROUP BY n.outcome

-- name: range_of
-- Ranges of a schedule do not overlap, so only the first one that ends at or after `low` can have begun before it.
SELECT t.schedule, t.at, t.until, t.count, t.decided_at, t.execution, t.outcome, t.ended AS status, NULL AS reason
FROM (SELECT * FROM tick WHERE schedule = :schedule AND until > at AND until >= :low ORDER BY until LIMIT 1) t
WHERE t.at < :low

-- name: marks_between
SELECT at, until, count, outcome FROM tick
WHERE schedule = :schedule AND at >= :low AND at <= :high AND execution IS NULL AND outcome <> 'queued'
ORDER BY at FOR UPDATE

-- name: mark_over
SELECT t.at, t.until, t.count, t.outcome
FROM (SELECT * FROM tick WHERE schedule = :schedule AND until > at AND until >= :low ORDER BY until LIMIT 1) t
WHERE t.at < :low

-- name: ticks_started
-- A queued tick will start without help, so it counts as started.
SELECT at FROM tick
WHERE schedule AMONG(:schedules, bigint) AND at >= :low AND at <= :high AND (execution IS NOT NULL OR outcome = 'queued')

-- name: drop_marks
DELETE FROM tick WHERE schedule = :schedule AND at AMONG(:ats, bigint) AND execution IS NULL

-- name: run_time
SELECT avg(f.finished_at - f.started_at) FROM (
    SELECT x.id FROM execution x WHERE x.job = :job AND x.app = :app AND x.namespace = :namespace
    ORDER BY x.id DESC LIMIT :most) l
CROSS JOIN finished f ON f.id = l.id AND f.final = 1 AND f.started_at IS NOT NULL

-- name: old_ticks @sqlite
-- Reads the ledger schedule by schedule: its primary key then finds the old ticks in their order.
SELECT s.id, s.removed_at, t.at
FROM schedule s LEFT JOIN tick t ON t.schedule = s.id AND t.at < :bound AND t.until < :bound AND t.decided_at < :bound
WHERE s.id > :after AND s.id <= (
    SELECT max(p.id) FROM (SELECT id FROM schedule WHERE id > :after ORDER BY id LIMIT :schedules) p)
ORDER BY s.id, t.at LIMIT :most

-- name: old_ticks @postgres
SELECT s.id, s.removed_at, t.at
FROM schedule s LEFT JOIN LATERAL (
    SELECT o.at FROM tick o
    WHERE o.schedule = s.id AND o.at < :bound AND o.until < :bound AND o.decided_at < :bound
    ORDER BY o.at LIMIT :most) t ON true
WHERE s.id > :after AND s.id <= (
    SELECT max(p.id) FROM (SELECT id FROM schedule WHERE id > :after ORDER BY id LIMIT :schedules) p)
ORDER BY s.id, t.at LIMIT :most

-- name: drop_ticks @sqlite
DELETE FROM tick WHERE (schedule, at) IN (SELECT schedule, at FROM EACH(:rows, schedule bigint, at bigint) e)

-- name: drop_ticks @postgres
DELETE FROM tick t USING EACH(:rows, schedule bigint, at bigint) e WHERE t.schedule = e.schedule AND t.at = e.at

-- name: drop_schedules
DELETE FROM schedule WHERE id AMONG(:ids, bigint) AND removed_at < :bound
  AND NOT EXISTS (SELECT 1 FROM tick t WHERE t.schedule = schedule.id)

-- name: ticks_between
-- The ledger of several schedules, up to a bound for each of them, in the order of instants.
SELECT t.schedule, t.at, t.until, t.count, t.decided_at, t.execution, t.outcome, coalesce(f.status, t.ended) AS status,
       f.reason
FROM EACH(:schedules, id bigint) s CROSS JOIN LATERAL[
    SELECT o.at AS value FROM tick o WHERE o.schedule = s.id AND o.at >= :low AND o.at < :high
    ORDER BY o.at LIMIT :each] e ON true
CROSS JOIN tick t ON t.schedule = s.id AND t.at = e.value LEFT JOIN finished f ON f.id = t.execution AND f.final = 1
ORDER BY t.at, t.schedule

-- name: days_of_ticks
-- How many ticks of a schedule had which outcome and status between two instants, up to a bound of rows.
SELECT n.at, n.count, n.outcome, n.execution IS NOT NULL AS has_started, coalesce(f.status, n.ended) AS status FROM (
    SELECT t.at, t.count, t.outcome, t.execution, t.ended FROM tick t
    WHERE t.schedule AMONG(:schedules, bigint) AND t.at >= :low AND t.at < :high ORDER BY t.at DESC LIMIT :most) n
LEFT JOIN finished f ON f.id = n.execution AND f.final = 1
