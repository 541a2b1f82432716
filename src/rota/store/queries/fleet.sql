-- name: add_worker
INSERT INTO worker (namespace, app, name, host, pid, version, queues, concurrency, state, started_at, heartbeat_at, lease_until)
VALUES (:namespace, :app, :name, :host, :pid, :version, :queues, :concurrency, 'live', :now, :now, :now + :lease)
RETURNING id

-- name: beat
UPDATE worker SET heartbeat_at = :now, lease_until = :now + :lease
WHERE id AMONG(:workers, bigint) AND stopped_at IS NULL
RETURNING id

-- name: set_worker_state
UPDATE worker SET state = :state WHERE id = :worker AND stopped_at IS NULL

-- name: stop_worker
UPDATE worker SET state = :state, stopped_at = :now WHERE id = :worker AND stopped_at IS NULL
