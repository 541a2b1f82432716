-- name: database_name @postgres
SELECT current_database()

-- name: migrations @postgres
SELECT number, checksum, applied_at FROM migration ORDER BY number

-- name: held_free
-- Skips executions that an open transaction of a job is about to end.
SELECT id, lane, rank, worker, fence, attempts, crashes, first_start_at, started_at, run, cancel_at, cancel_reason
FROM running WHERE id AMONG(:ids, uuid) ORDER BY id FOR UPDATE SKIP LOCKED

-- name: outcome_of
SELECT status, worker FROM finished WHERE id = :id AND fence = :fence
