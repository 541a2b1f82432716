-- How long ended executions are kept, in seconds. Null: as long as the setting says. 0: for ever.
ALTER TABLE namespace ADD COLUMN retention_s bigint;

-- What is left of executions that were pruned: one row for every job, queue, status and hour of their ends.
CREATE TABLE summary (
    hour       bigint NOT NULL,
    executions bigint NOT NULL,
    ran_us     bigint NOT NULL,
    longest_us bigint NOT NULL,
    namespace  text NOT NULL,
    app        text NOT NULL,
    job        text NOT NULL,
    queue      text NOT NULL,
    status     text NOT NULL,
    PRIMARY KEY (namespace, job, hour, app, queue, status)
);

-- Work that one node does for all: who comes next sees when it was done, and goes on where the last one stopped.
CREATE TABLE chore (
    name     text PRIMARY KEY,
    begun_at bigint NOT NULL,
    beat_at  bigint NOT NULL,
    done_at  bigint NOT NULL,
    full_at  bigint NOT NULL,
    removed  bigint NOT NULL,
    mark     text NOT NULL
) WITH (fillfactor = 50);

-- Keys go after the history of their holders, oldest first.
CREATE INDEX unique_key_taken ON unique_key (taken_at, holder);
