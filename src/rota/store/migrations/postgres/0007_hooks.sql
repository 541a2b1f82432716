-- Inbound webhooks, and the list of a namespace's events.

-- An address that other systems post to: each accepted request becomes an event. `key` is the random part of the
-- address. A signature can only be checked with the secret itself; that of the scheme `bearer` is stored as its SHA-256.
-- After a rotation the old secret is valid until `old_until`. `revision` counts every change.
CREATE TABLE hook (
    id               uuid PRIMARY KEY,
    namespace        text NOT NULL,
    name             text NOT NULL,
    key              text NOT NULL UNIQUE,
    event            text NOT NULL,
    scheme           text NOT NULL,
    -- Where the id of a request is found by which a repeated one is recognised: a header or a JSON pointer.
    dedupe_header    text,
    dedupe_pointer   text,
    -- Of the scheme `hmac`.
    signature_header text,
    timestamp_header text,
    description      text NOT NULL,
    secret           text NOT NULL,
    old_secret       text,
    old_until        bigint,
    revision         bigint NOT NULL,
    created_at       bigint NOT NULL,
    created_by       text NOT NULL,
    updated_at       bigint NOT NULL
);
CREATE UNIQUE INDEX hook_name ON hook (namespace, name);

CREATE INDEX event_namespace ON event (namespace, id);
