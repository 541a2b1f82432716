-- Tokens and sessions of the HTTP API, and the requests that were made with an Idempotency-Key.

-- The text of a token is known only to its holder: `digest` is its SHA-256, `ending` its last four characters. A revoked
-- token stays, so that its name is known in the audit trail. Lists are JSON. After a rotation the old secret is valid
-- until `old_until`.
CREATE TABLE token (
    id           TEXT PRIMARY KEY,
    namespace    TEXT NOT NULL,
    name         TEXT NOT NULL,
    role         TEXT,
    scopes       TEXT NOT NULL,
    namespaces   TEXT NOT NULL,
    groups       TEXT NOT NULL DEFAULT '[]',
    only_queues  TEXT,
    only_jobs    TEXT,
    digest       TEXT NOT NULL UNIQUE,
    ending       TEXT NOT NULL,
    old_digest   TEXT UNIQUE,
    old_until    INTEGER,
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    revoked_by   TEXT
);
CREATE INDEX token_namespace ON token (namespace, id);
CREATE UNIQUE INDEX token_name ON token (namespace, name) WHERE revoked_at IS NULL;

-- A browser's sign-in; it ends with its token.
CREATE TABLE session (
    digest     TEXT PRIMARY KEY,
    token      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
);
CREATE INDEX session_token ON session (token);
CREATE INDEX session_used ON session (used_at);

-- A request that succeeded, by its Idempotency-Key; written in the transaction of its effect. `route` is method and
-- path, `digest` the SHA-256 of query and body, `answer` the body of the answer.
CREATE TABLE request_key (
    namespace  TEXT NOT NULL,
    actor      TEXT NOT NULL,
    route      TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     TEXT NOT NULL,
    status     INTEGER NOT NULL,
    headers    TEXT NOT NULL,
    answer     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, actor, route, key)
);
CREATE INDEX request_key_created ON request_key (created_at);

-- From where a change came: the address of the client and the id of its request.
ALTER TABLE audit ADD COLUMN address TEXT;
ALTER TABLE audit ADD COLUMN request TEXT;
