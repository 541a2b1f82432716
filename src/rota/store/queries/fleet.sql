-- name: add_worker
INSERT INTO worker (
    namespace, others, app, name, host, pid, version, offers, queues, jobs, concurrency, supervisor, least, most, deploy,
    state, started_at, heartbeat_at, lease_until)
VALUES (
    :namespace, :others, :app, :name, :host, :pid, :version, :offers, :queues, :jobs, :concurrency, :supervisor, :least, :most,
    :deploy, 'live', :now, :now, CAST(:now AS bigint) + :lease)
RETURNING id

-- name: beat
UPDATE worker SET heartbeat_at = :now, lease_until = CAST(:now AS bigint) + :lease,
    beats = substr(beats || CASE WHEN CAST(:now AS bigint) - heartbeat_at >= 10 * CAST(:period AS bigint) THEN '9' ELSE
        CAST(GREATEST(0, (CAST(:now AS bigint) - heartbeat_at) / CAST(:period AS bigint) - 1) AS text) END,
        GREATEST(1, length(beats) - 38)),
    memory = coalesce((SELECT e.memory FROM EACH(:memory, id bigint, memory bigint) e WHERE e.id = worker.id), memory)
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

-- name: end_of_worker
SELECT ended FROM worker WHERE id = :worker

-- name: set_worker_end
UPDATE worker SET ended = :ended WHERE id = :worker

-- name: stop_worker
UPDATE worker SET state = :state, stopped_at = :now WHERE id = :worker AND stopped_at IS NULL
