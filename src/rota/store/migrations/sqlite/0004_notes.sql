-- What an attempt tells while it runs: its log, how far it is, from where another can go on; and what it cost.

-- Pieces of the logs of all attempts: the lines from number `first` to number `last` of one attempt, as JSON.
CREATE TABLE log (
    id    TEXT NOT NULL,
    fence INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    first INTEGER NOT NULL,
    text  TEXT NOT NULL,
    PRIMARY KEY (id, fence, last)
) WITHOUT ROWID;

-- One row for every execution that has told something; the last word of its last attempt that did. The checkpoint is
-- JSON, and stays when another attempt begins.
CREATE TABLE note (
    id         TEXT NOT NULL PRIMARY KEY,
    fence      INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    done       REAL,
    total      REAL,
    note       TEXT,
    checkpoint TEXT,
    suspicion  INTEGER NOT NULL DEFAULT 0
);

-- JSON: processor seconds, peak memory, exit code, signal.
ALTER TABLE finished ADD COLUMN usage TEXT;
