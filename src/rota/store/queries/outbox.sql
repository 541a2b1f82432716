-- name: outbox_rows @sqlite
SELECT id, name, subject, key, payload FROM TABLE_OF_USER WHERE id NOT IN (SELECT value FROM json_each(:left))
ORDER BY id LIMIT :most

-- name: outbox_rows @postgres
-- Nothing if another transaction works on the table.
SELECT o.id, o.name, o.subject, o.key, CAST(o.payload AS text) AS payload FROM TABLE_OF_USER o
WHERE (SELECT pg_try_advisory_xact_lock(hashtextextended(concat_ws(' ', SCHEMA(), 'outbox', CAST(:table AS text)), 0)))
  AND NOT o.id = ANY(CAST(:left AS bigint[]))
ORDER BY o.id LIMIT :most

-- name: drop_outbox_rows
DELETE FROM TABLE_OF_USER WHERE id AMONG(:ids, bigint)
