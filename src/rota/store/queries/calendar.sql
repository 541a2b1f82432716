-- name: set_calendar
INSERT INTO calendar (namespace, name, days, updated_at) VALUES (:namespace, :name, :days, :now)
ON CONFLICT (namespace, name) DO UPDATE SET days = excluded.days, updated_at = excluded.updated_at,
    revision = calendar.revision + 1
WHERE calendar.days <> excluded.days

-- name: add_calendar
INSERT INTO calendar (namespace, name, days, updated_at) VALUES (:namespace, :name, :days, :now) ON CONFLICT DO NOTHING

-- name: calendar_days
SELECT days FROM calendar WHERE namespace = :namespace AND name = :name

-- name: calendars
SELECT name, days, updated_at, revision FROM calendar WHERE namespace = :namespace ORDER BY name

-- name: calendar
SELECT name, days, updated_at, revision FROM calendar WHERE namespace = :namespace AND name = :name

-- name: lock_calendar
SELECT revision FROM calendar WHERE namespace = :namespace AND name = :name FOR UPDATE

-- name: hold_calendars
-- Shared locks, so that none of them is removed before the schedule that uses it is there.
SELECT name FROM calendar WHERE namespace = :namespace AND name AMONG(:names, text) ORDER BY name FOR SHARE

-- name: remove_calendar
DELETE FROM calendar WHERE namespace = :namespace AND name = :name

-- name: schedules_with
-- Schedules whose stored text contains `:part`; the caller checks each match. Reads all schedules of the namespace:
-- used only to remove a calendar.
SELECT id, app, name, spec FROM schedule
WHERE namespace = :namespace AND removed_at IS NULL AND FOUND(spec, :part) > 0
