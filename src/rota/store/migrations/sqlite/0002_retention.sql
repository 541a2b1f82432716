-- How long ended executions are kept, in seconds. Null: as long as the setting says. 0: for ever.
ALTER TABLE namespace ADD COLUMN retention_s INTEGER;

-- What is left of executions that were pruned: one row for every job, queue, status and hour of their ends.
CREATE TABLE summary (
    namespace  TEXT NOT NULL,
    app        TEXT NOT NULL,
    job        TEXT NOT NULL,
    queue      TEXT NOT NULL,
    hour       INTEGER NOT NULL,
    status     TEXT NOT NULL,
    executions INTEGER NOT NULL,
    ran_us     INTEGER NOT NULL,
    longest_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, job, hour, app, queue, status)
) WITHOUT ROWID;

-- Work that one node does for all: who comes next sees when it was done, and goes on where the last one stopped.
CREATE TABLE chore (
    name     TEXT PRIMARY KEY,
    begun_at INTEGER NOT NULL,
    beat_at  INTEGER NOT NULL,
    done_at  INTEGER NOT NULL,
    full_at  INTEGER NOT NULL,
    removed  INTEGER NOT NULL,
    mark     TEXT NOT NULL
) WITHOUT ROWID;

-- Keys go after the history of their holders, oldest first.
CREATE INDEX unique_key_taken ON unique_key (taken_at, holder);
