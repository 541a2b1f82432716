-- name: due_schedules @sqlite
-- Until when each shard is due, as the caller says: its own up to now, those of others only if these are late.
-- In the order of the shards, which is another one each time: to sort a million for each thousand would take for ever.
SELECT s.id, s.shard, s.namespace, s.app, s.name, s.spec, s.revision, s.cursor, s.next_at, s.last_execution, s.held
FROM EACH(:shards, shard int, until bigint) m CROSS JOIN schedule s ON s.shard = m.shard AND s.next_at <= m.until
LIMIT :most

-- name: due_schedules @postgres
-- A few of each shard, so that a crowd in one does not keep the others waiting.
SELECT s.id, s.shard, s.namespace, s.app, s.name, s.spec, s.revision, s.cursor, s.next_at, s.last_execution, s.held
FROM EACH(:shards, shard int, until bigint) m CROSS JOIN LATERAL (
    SELECT d.id, d.shard, d.namespace, d.app, d.name, d.spec, d.revision, d.cursor, d.next_at, d.last_execution, d.held
    FROM schedule d WHERE d.shard = m.shard AND d.next_at <= m.until
    ORDER BY d.next_at LIMIT :each FOR UPDATE SKIP LOCKED) s ON true LIMIT :most

-- name: unfinished
SELECT e.id FROM EACH(:ids, id uuid) e
WHERE EXISTS (SELECT 1 FROM running u WHERE u.id = e.id) OR EXISTS (SELECT 1 FROM ready r WHERE r.id = e.id)
   OR EXISTS (SELECT 1 FROM scheduled s WHERE s.id = e.id) OR EXISTS (SELECT 1 FROM waiting w WHERE w.id = e.id)

-- name: add_ticks
-- The key of a tick is what makes it happen once: what is not returned was there before.
INSERT INTO tick (schedule, at, until, count, decided_at, execution, outcome)
SELECT schedule, at, until, count, :now, execution, outcome
FROM EACH(:rows, schedule bigint, at bigint, until bigint, count bigint, execution uuid, outcome text) e WHERE true
ON CONFLICT DO NOTHING
RETURNING schedule, at

-- name: release_ticks
UPDATE tick SET outcome = e.outcome, execution = e.execution, decided_at = :now
FROM EACH(:rows, schedule bigint, at bigint, outcome text, execution uuid) e
WHERE tick.schedule = e.schedule AND tick.at = e.at

-- name: start_ticks
INSERT INTO execution (
    id, namespace, app, job, job_version, actor, queue, lane, priority, arguments, created_at, run_at, schedule, tick,
    catch_up)
SELECT id, namespace, app, job, version, 'schedule', queue, lane, priority, arguments, :now, run_at, schedule, tick,
       catch_up
FROM EACH(:rows, id uuid, namespace text, app text, job text, version bigint, queue text, lane int, priority int, arguments text, run_at bigint, schedule text, tick bigint, catch_up int) e

-- name: ready_ticks
INSERT INTO ready (lane, rank, id, fence, attempts, crashes)
SELECT lane, rank, id, 0, 0, 0 FROM EACH(:rows, id uuid, lane int, rank bigint) e

-- name: later_ticks
INSERT INTO scheduled (id, lane, priority, run_at, fence, attempts, crashes)
SELECT id, lane, priority, run_at, 0, 0, 0 FROM EACH(:rows, id uuid, lane int, priority int, run_at bigint) e

-- name: move_schedules
UPDATE schedule SET cursor = e.cursor, next_at = e.next_at, waits_for = e.waits_for, held = e.held,
    last_at = coalesce(e.last_at, schedule.last_at), last_late = coalesce(e.last_late, schedule.last_late),
    last_outcome = coalesce(e.last_outcome, schedule.last_outcome),
    last_execution = coalesce(e.last_execution, schedule.last_execution)
FROM EACH(:rows, id bigint, revision bigint, cursor bigint, next_at bigint, waits_for uuid, held text, last_at bigint, last_late bigint, last_outcome text, last_execution uuid) e
WHERE schedule.id = e.id AND schedule.revision = e.revision

-- name: postpone_schedules
UPDATE schedule SET next_at = :until WHERE id AMONG(:ids, bigint)

-- name: has_followers
SELECT EXISTS (SELECT 1 FROM schedule WHERE waits_for IS NOT NULL)

-- name: wake_followers
UPDATE schedule SET next_at = :now + coalesce(delay, 0), waits_for = NULL
WHERE waits_for AMONG(:ids, uuid) AND paused_at IS NULL AND removed_at IS NULL
RETURNING next_at

-- name: forgotten_followers
SELECT s.waits_for FROM schedule s
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
SELECT id, namespace, app, name, job, origin, spec, revision, cursor, next_at, last_execution, held, paused_at
FROM schedule WHERE namespace = :namespace AND app = :app AND name AMONG(:names, text) AND removed_at IS NULL
ORDER BY name FOR UPDATE

-- name: add_schedules
INSERT INTO schedule (cursor, next_at, created_at, updated_at, delay, shard, namespace, app, name, job, origin, spec)
SELECT cursor, next_at, :now, :now, delay, shard, :namespace, :app, name, job, :origin, spec
FROM EACH(:rows, name text, job text, spec text, shard int, cursor bigint, next_at bigint, delay bigint) e WHERE true
ON CONFLICT DO NOTHING

-- name: change_schedules
-- A new expression starts from now.
UPDATE schedule SET cursor = e.cursor, next_at = CASE WHEN paused_at IS NULL THEN e.next_at END, updated_at = :now,
    revision = revision + 1, delay = e.delay, shard = e.shard, job = e.job, spec = e.spec, held = '[]',
    waits_for = NULL, origin = :origin
FROM EACH(:rows, name text, job text, spec text, shard int, cursor bigint, next_at bigint, delay bigint) e
WHERE schedule.namespace = :namespace AND schedule.app = :app AND schedule.name = e.name AND removed_at IS NULL

-- name: remove_schedules
UPDATE schedule SET removed_at = :now, updated_at = :now, revision = revision + 1, next_at = NULL, waits_for = NULL,
    held = '[]'
WHERE namespace = :namespace AND app = :app AND name AMONG(:names, text) AND removed_at IS NULL

-- name: pause_schedule
UPDATE schedule SET paused_at = :now, paused_by = :actor, paused_note = :note, next_at = NULL, waits_for = NULL,
    held = '[]', cursor = :cursor, updated_at = :now, revision = revision + 1
WHERE id = :id

-- name: resume_schedule
UPDATE schedule SET paused_at = NULL, paused_by = NULL, paused_note = NULL, next_at = :next_at, cursor = :cursor,
    held = '[]', updated_at = :now, revision = revision + 1
WHERE id = :id

-- name: set_calendar
INSERT INTO calendar (namespace, name, days, updated_at) VALUES (:namespace, :name, :days, :now)
ON CONFLICT (namespace, name) DO UPDATE SET days = excluded.days, updated_at = excluded.updated_at

-- name: calendar_days
SELECT days FROM calendar WHERE namespace = :namespace AND name = :name

-- name: schedules
SELECT id, namespace, app, name, job, origin, spec, cursor, next_at, paused_at, paused_by, paused_note, last_at,
       last_late, last_outcome, last_execution, waits_for, held, created_at, updated_at, removed_at
FROM schedule WHERE namespace = :namespace AND removed_at IS NULL AND (:all_apps OR app = :app)
  AND (:any_name OR name = :name OR job = :name)
ORDER BY app, name LIMIT :most

-- name: ticks_of
-- The ledger of all schedules of that name, also of those that were removed; newest first.
SELECT t.schedule, t.at, t.until, t.count, t.decided_at, t.execution, t.outcome, f.status, f.reason
FROM schedule s CROSS JOIN tick t ON t.schedule = s.id
LEFT JOIN finished f ON f.id = t.execution AND f.final = 1
WHERE s.namespace = :namespace AND s.app = :app AND s.name = :name
  AND t.until >= :low AND t.at <= :high
ORDER BY t.at DESC LIMIT :most

-- name: ranges_over
SELECT at, until, count, outcome FROM tick
WHERE schedule = :schedule AND at <= :high AND until >= :low AND execution IS NULL AND outcome <> 'queued'
ORDER BY at FOR UPDATE

-- name: ticks_started
-- What is queued starts by itself.
SELECT at FROM tick
WHERE schedule = :schedule AND at >= :low AND at <= :high AND (execution IS NOT NULL OR outcome = 'queued')

-- name: drop_marks
DELETE FROM tick WHERE schedule = :schedule AND at AMONG(:ats, bigint) AND execution IS NULL

-- name: run_time
SELECT avg(f.finished_at - f.started_at) FROM (
    SELECT x.id FROM execution x WHERE x.job = :job AND x.app = :app AND x.namespace = :namespace
    ORDER BY x.id DESC LIMIT :most) l
CROSS JOIN finished f ON f.id = l.id AND f.final = 1 AND f.started_at IS NOT NULL

-- name: old_ticks
-- The ledger is kept by the schedule, so that old ticks are found without another index.
SELECT s.id, s.removed_at, t.at FROM (
    SELECT id, removed_at FROM schedule WHERE id > :after ORDER BY id LIMIT :schedules) s
LEFT JOIN tick t ON t.schedule = s.id AND t.at < :bound AND t.until < :bound AND t.decided_at < :bound
ORDER BY s.id, t.at LIMIT :most

-- name: drop_ticks @sqlite
DELETE FROM tick WHERE (schedule, at) IN (SELECT schedule, at FROM EACH(:rows, schedule bigint, at bigint) e)

-- name: drop_ticks @postgres
DELETE FROM tick t USING EACH(:rows, schedule bigint, at bigint) e WHERE t.schedule = e.schedule AND t.at = e.at

-- name: drop_schedules
DELETE FROM schedule WHERE id AMONG(:ids, bigint) AND removed_at < :bound
  AND NOT EXISTS (SELECT 1 FROM tick t WHERE t.schedule = schedule.id)
