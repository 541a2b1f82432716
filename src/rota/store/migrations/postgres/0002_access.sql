-- Tokens and sessions of the HTTP API, and the requests that were made with an Idempotency-Key.

-- The text of a token is known only to its holder: `digest` is its SHA-256, `ending` its last four characters. A revoked
-- token stays, so that its name is known in the audit trail. Lists are JSON. After a rotation the old secret is valid
-- until `old_until`.
CREATE TABLE token (
    id           uuid PRIMARY KEY,
    namespace    text NOT NULL,
    name         text NOT NULL,
    role         text,
    scopes       text NOT NULL,
    namespaces   text NOT NULL,
    groups       text NOT NULL DEFAULT '[]',
    only_queues  text,
    only_jobs    text,
    digest       text NOT NULL UNIQUE,
    ending       text NOT NULL,
    old_digest   text UNIQUE,
    old_until    bigint,
    created_at   bigint NOT NULL,
    created_by   text NOT NULL,
    expires_at   bigint,
    last_used_at bigint,
    revoked_at   bigint,
    revoked_by   text
);
CREATE INDEX token_namespace ON token (namespace, id);
CREATE UNIQUE INDEX token_name ON token (namespace, name) WHERE revoked_at IS NULL;

-- A browser's sign-in; it ends with its token.
CREATE TABLE session (
    digest     text PRIMARY KEY,
    token      uuid NOT NULL,
    created_at bigint NOT NULL,
    used_at    bigint NOT NULL
);
CREATE INDEX session_token ON session (token);
CREATE INDEX session_used ON session (used_at);

-- A request that succeeded, by its Idempotency-Key; written in the transaction of its effect. `route` is method and
-- path, `digest` the SHA-256 of query and body, `answer` the body of the answer.
CREATE TABLE request_key (
    namespace  text NOT NULL,
    actor      text NOT NULL,
    route      text NOT NULL,
    key        text NOT NULL,
    digest     text NOT NULL,
    status     integer NOT NULL,
    headers    text NOT NULL,
    answer     text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (namespace, actor, route, key)
);
CREATE INDEX request_key_created ON request_key (created_at);

-- From where a change came: the address of the client and the id of its request.
ALTER TABLE audit ADD COLUMN address text;
ALTER TABLE audit ADD COLUMN request text;
