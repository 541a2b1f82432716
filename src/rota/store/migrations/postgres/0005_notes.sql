-- What an attempt tells while it runs: its log, how far it is, from where another can go on; and what it cost.

-- Pieces of the logs of all attempts: the lines from number `first` to number `last` of one attempt, as JSON.
-- Partitioned like execution.
CREATE TABLE log (
    id    uuid NOT NULL,
    fence integer NOT NULL,
    last  integer NOT NULL,
    first integer NOT NULL,
    text  text NOT NULL
) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX log_id ON log (id, fence, last);
CREATE TABLE log_default PARTITION OF log DEFAULT;

-- The days that the others have already.
DO $days$
DECLARE
    day record;
BEGIN
    FOR day IN
        SELECT 'log' || substr(c.relname, length('execution') + 1) AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'execution'::regclass AND c.relname ~ '^execution_p[0-9]+$'
    LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF log %s', day.name, day.bounds);
    END LOOP;
END
$days$;

-- One row for every execution that has told something; the last word of its last attempt that did. The checkpoint is
-- JSON, and stays when another attempt begins.
CREATE TABLE note (
    id         uuid PRIMARY KEY,
    at         bigint NOT NULL,
    done       double precision,
    total      double precision,
    fence      integer NOT NULL,
    suspicion  integer NOT NULL DEFAULT 0,
    note       text,
    checkpoint text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- JSON: processor seconds, peak memory, exit code, signal.
ALTER TABLE finished ADD COLUMN usage text;
