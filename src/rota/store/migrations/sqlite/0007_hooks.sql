-- Inbound webhooks, and the list of a namespace's events.

-- An address that other systems post to: each accepted request becomes an event. `key` is the random part of the
-- address. A signature can only be checked with the secret itself; that of the scheme `bearer` is stored as its SHA-256.
-- After a rotation the old secret is valid until `old_until`. `revision` counts every change.
CREATE TABLE hook (
    id               TEXT PRIMARY KEY,
    namespace        TEXT NOT NULL,
    name             TEXT NOT NULL,
    key              TEXT NOT NULL UNIQUE,
    event            TEXT NOT NULL,
    scheme           TEXT NOT NULL,
    -- Where the id of a request is found by which a repeated one is recognised: a header or a JSON pointer.
    dedupe_header    TEXT,
    dedupe_pointer   TEXT,
    -- Of the scheme `hmac`.
    signature_header TEXT,
    timestamp_header TEXT,
    description      TEXT NOT NULL,
    secret           TEXT NOT NULL,
    old_secret       TEXT,
    old_until        INTEGER,
    revision         INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    created_by       TEXT NOT NULL,
    updated_at       INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX hook_name ON hook (namespace, name);

CREATE INDEX event_namespace ON event (namespace, id);
