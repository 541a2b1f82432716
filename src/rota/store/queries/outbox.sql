-- name: outbox_rows @sqlite
-- Texts as hexadecimal digits: a program may have written a BLOB, or text that is not UTF-8, on which the statement
-- would fail.
SELECT id, hex(name), CASE WHEN subject IS NOT NULL THEN hex(subject) END, CASE WHEN key IS NOT NULL THEN hex(key) END,
       CASE WHEN payload IS NOT NULL THEN hex(payload) END
FROM TABLE_OF_USER WHERE id > :after AND id NOT IN (SELECT value FROM json_each(:skipped))
ORDER BY id LIMIT :most

-- name: outbox_rows @postgres
-- No rows if another transaction is reading the table.
SELECT o.id, encode(convert_to(o.name, 'UTF8'), 'hex'), encode(convert_to(o.subject, 'UTF8'), 'hex'),
       encode(convert_to(o.key, 'UTF8'), 'hex'), encode(convert_to(CAST(o.payload AS text), 'UTF8'), 'hex')
FROM TABLE_OF_USER o
WHERE (SELECT pg_try_advisory_xact_lock(hashtextextended(concat_ws(' ', SCHEMA(), 'outbox', CAST(:table AS text)), 0)))
  AND o.id > CAST(:after AS bigint) AND NOT o.id = ANY(CAST(:skipped AS bigint[]))
ORDER BY o.id LIMIT :most

-- name: drop_outbox_rows
DELETE FROM TABLE_OF_USER WHERE id AMONG(:ids, bigint)
