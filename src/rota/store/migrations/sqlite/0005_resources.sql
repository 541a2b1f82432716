-- How it stands with what jobs rely on. A breaker is open if opened_at is there; one may try at retry_at.
CREATE TABLE breaker (
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    failures    INTEGER NOT NULL DEFAULT 0,
    opened_at   INTEGER,
    retry_at    INTEGER,
    wait        INTEGER NOT NULL DEFAULT 0,
    probe_until INTEGER,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

-- Which worker last ran an execution with this value of an argument.
CREATE TABLE affinity (
    namespace TEXT NOT NULL,
    app       TEXT NOT NULL,
    key       TEXT NOT NULL,
    worker    INTEGER NOT NULL,
    used_at   INTEGER NOT NULL,
    PRIMARY KEY (namespace, app, key)
) WITHOUT ROWID;
