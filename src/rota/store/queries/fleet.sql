-- name: add_worker
INSERT INTO worker (
    namespace, others, app, name, host, pid, version, offers, queues, jobs, concurrency, supervisor, least, most, deploy,
    state, started_at, heartbeat_at, lease_until)
VALUES (
    :namespace, :others, :app, :name, :host, :pid, :version, :offers, :queues, :jobs, :concurrency, :supervisor, :least, :most,
    :deploy, 'live', :now, :now, CAST(:now AS bigint) + :lease)
RETURNING id

-- name: beat
UPDATE worker SET heartbeat_at = :now, lease_until = CAST(:now AS bigint) + :lease
WHERE id AMONG(:workers, bigint) AND stopped_at IS NULL
RETURNING id, state

-- name: ask_to_drain
UPDATE worker SET state = :asked
WHERE id = :worker AND namespace = :namespace AND stopped_at IS NULL AND state = 'live'

-- name: set_worker_state
UPDATE worker SET state = :state WHERE id = :worker AND stopped_at IS NULL

-- name: set_trouble
UPDATE worker SET trouble = :trouble WHERE id = :worker AND stopped_at IS NULL

-- name: trouble_of
SELECT trouble FROM worker WHERE id = :worker

-- name: lock_worker
-- Waits for a claim in progress, which holds the row with KEY SHARE; a heartbeat does not.
SELECT id FROM worker WHERE id = :worker AND stopped_at IS NULL FOR UPDATE

-- name: stop_worker
UPDATE worker SET state = :state, stopped_at = :now WHERE id = :worker AND stopped_at IS NULL
