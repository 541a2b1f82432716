-- name: breakers
SELECT name, failures, opened_at, retry_at, wait, probe_until FROM breaker WHERE namespace = :namespace ORDER BY name

-- name: open_breakers
SELECT name, failures, opened_at, retry_at, wait, probe_until FROM breaker
WHERE namespace = :namespace AND opened_at IS NOT NULL

-- name: breakers_named
SELECT name, failures, opened_at, retry_at, wait, probe_until FROM breaker
WHERE namespace = :namespace AND name AMONG(:names, text)

-- name: lock_breakers
SELECT name, failures, opened_at, retry_at, wait, probe_until FROM breaker
WHERE namespace = :namespace AND name AMONG(:names, text) ORDER BY name FOR UPDATE

-- name: add_breakers
INSERT INTO breaker (namespace, name) SELECT :namespace, name FROM EACH(:rows, name text) e WHERE true ORDER BY name
ON CONFLICT DO NOTHING

-- name: set_breakers
UPDATE breaker SET failures = e.failures, opened_at = e.opened_at, retry_at = e.retry_at, wait = e.wait,
    probe_until = e.probe_until
FROM EACH(:rows, name text, failures int, opened_at bigint, retry_at bigint, wait bigint, probe_until bigint) e
WHERE breaker.namespace = :namespace AND breaker.name = e.name

-- name: probe
-- Skips a breaker that another transaction has locked to record the outcome of the last probe.
UPDATE breaker SET probe_until = :now + wait WHERE namespace = :namespace AND name = (
    SELECT b.name FROM breaker b
    WHERE b.namespace = :namespace AND b.name = :name AND b.retry_at <= :now
      AND (b.probe_until IS NULL OR b.probe_until <= :now) FOR UPDATE SKIP LOCKED)

-- name: release_probe
UPDATE breaker SET probe_until = NULL WHERE namespace = :namespace AND name AMONG(:names, text)

-- name: namespaces_of
-- With bounds, so that PostgreSQL opens only the partitions that may contain the ids.
SELECT id, namespace FROM execution WHERE id AMONG(:ids, uuid) AND id >= :lowest AND id <= :highest
