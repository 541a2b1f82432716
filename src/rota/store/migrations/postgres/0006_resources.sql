-- How it stands with what jobs rely on. A breaker is open if opened_at is there; one may try at retry_at.
CREATE TABLE breaker (
    namespace   text NOT NULL,
    name        text NOT NULL,
    opened_at   bigint,
    retry_at    bigint,
    wait        bigint NOT NULL DEFAULT 0,
    probe_until bigint,
    failures    integer NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, name)
) WITH (fillfactor = 50);

-- Which worker last ran an execution with this value of an argument.
CREATE TABLE affinity (
    used_at   bigint NOT NULL,
    worker    bigint NOT NULL,
    namespace text NOT NULL,
    app       text NOT NULL,
    key       text NOT NULL,
    PRIMARY KEY (namespace, app, key)
) WITH (fillfactor = 70);
