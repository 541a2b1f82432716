-- Quotas of namespaces, the servers that share them, and callbacks.

-- A JSON object (domain/quota.py); null without quotas.
ALTER TABLE namespace ADD COLUMN quotas text;

-- The processes of the HTTP API that are alive. A rate is shared among them by equal parts.
CREATE TABLE server_node (
    id      uuid PRIMARY KEY,
    seen_at bigint NOT NULL
);

-- Executions with a callback that have not ended.
CREATE TABLE callback_open (
    execution uuid PRIMARY KEY
);
