-- name: hooks
SELECT id, namespace, name, key, event, scheme, dedupe_header, dedupe_pointer, signature_header, timestamp_header,
       description, revision, created_at, created_by, updated_at, old_until
FROM hook WHERE namespace = :namespace ORDER BY name

-- name: hook
-- By its id or by its name.
SELECT id, namespace, name, key, event, scheme, dedupe_header, dedupe_pointer, signature_header, timestamp_header,
       description, revision, created_at, created_by, updated_at, old_until
FROM hook WHERE namespace = :namespace AND (id = :id OR name = :name)

-- name: lock_hook
SELECT id FROM hook WHERE namespace = :namespace AND (id = :id OR name = :name) FOR UPDATE

-- name: hook_of_key
SELECT id, namespace, name, key, event, scheme, dedupe_header, dedupe_pointer, signature_header, timestamp_header,
       description, revision, created_at, created_by, updated_at, old_until, secret, old_secret
FROM hook WHERE key = :key

-- name: add_hook
INSERT INTO hook (id, namespace, name, key, event, scheme, dedupe_header, dedupe_pointer, signature_header,
                  timestamp_header, description, secret, revision, created_at, created_by, updated_at)
VALUES (:id, :namespace, :name, :key, :event, :scheme, :dedupe_header, :dedupe_pointer, :signature_header,
        :timestamp_header, :description, :secret, 1, :now, :actor, :now)
ON CONFLICT DO NOTHING

-- name: change_hook
UPDATE hook SET name = :name, event = :event, dedupe_header = :dedupe_header, dedupe_pointer = :dedupe_pointer,
       signature_header = :signature_header, timestamp_header = :timestamp_header, description = :description,
       revision = revision + 1, updated_at = :now
WHERE namespace = :namespace AND id = :id

-- name: rotate_hook
UPDATE hook SET old_secret = secret, old_until = :old_until, secret = :secret, revision = revision + 1, updated_at = :now
WHERE namespace = :namespace AND id = :id

-- name: drop_hook
DELETE FROM hook WHERE namespace = :namespace AND id = :id
