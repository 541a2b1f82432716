-- name: token_by_digest
SELECT id, namespace, name, role, scopes, namespaces, groups, only_queues, only_jobs, ending, created_at, created_by,
       expires_at, last_used_at, revoked_at, revoked_by, CASE WHEN digest = :digest THEN NULL ELSE old_until END AS old_until
FROM token WHERE digest = :digest OR old_digest = :digest

-- name: token_of_session
SELECT t.id, t.namespace, t.name, t.role, t.scopes, t.namespaces, t.groups, t.only_queues, t.only_jobs, t.ending,
       t.created_at, t.created_by, t.expires_at, t.last_used_at, t.revoked_at, t.revoked_by, NULL AS old_until
FROM session s JOIN token t ON t.id = s.token
WHERE s.digest = :digest AND s.used_at > :used_after AND s.created_at > :created_after

-- name: tokens
SELECT id, namespace, name, role, scopes, namespaces, groups, only_queues, only_jobs, ending, created_at, created_by,
       expires_at, last_used_at, revoked_at, revoked_by, old_until
FROM token WHERE namespace = :namespace ORDER BY id

-- name: token
SELECT id, namespace, name, role, scopes, namespaces, groups, only_queues, only_jobs, ending, created_at, created_by,
       expires_at, last_used_at, revoked_at, revoked_by, old_until
FROM token WHERE namespace = :namespace AND id = :id

-- name: lock_token
SELECT id FROM token WHERE namespace = :namespace AND id = :id FOR UPDATE

-- name: token_named
SELECT id FROM token WHERE namespace = :namespace AND name = :name AND revoked_at IS NULL

-- name: has_tokens
SELECT 1 FROM token LIMIT 1

-- name: add_token
INSERT INTO token (id, namespace, name, role, scopes, namespaces, groups, only_queues, only_jobs, digest, ending,
                   created_at, created_by, expires_at)
VALUES (:id, :namespace, :name, :role, :scopes, :namespaces, :groups, :only_queues, :only_jobs, :digest, :ending,
        :now, :actor, :expires_at)

-- name: rotate_token
UPDATE token SET old_digest = digest, old_until = :old_until, digest = :digest, ending = :ending
WHERE namespace = :namespace AND id = :id

-- name: change_token
UPDATE token SET name = :name, expires_at = :expires_at WHERE namespace = :namespace AND id = :id

-- name: revoke_token
UPDATE token SET revoked_at = :now, revoked_by = :actor WHERE namespace = :namespace AND id = :id;
DELETE FROM session WHERE token = :id

-- name: tokens_used
-- At most once a minute for each token, many at once.
UPDATE token SET last_used_at = e.at FROM EACH(:rows, id uuid, at bigint) e
WHERE token.id = e.id AND (token.last_used_at IS NULL OR token.last_used_at < e.at)

-- name: add_session
INSERT INTO session (digest, token, created_at, used_at) VALUES (:digest, :token, :now, :now)

-- name: sessions_used
UPDATE session SET used_at = e.at FROM EACH(:rows, digest text, at bigint) e
WHERE session.digest = e.digest AND session.used_at < e.at

-- name: end_session
DELETE FROM session WHERE digest = :digest

-- name: prune_sessions
DELETE FROM session WHERE used_at <= :used_before OR created_at <= :created_before

-- name: take_request_key
-- The key is locked, so no other transaction has inserted it without a commit.
INSERT INTO request_key (namespace, actor, route, key, digest, status, headers, answer, created_at)
VALUES (:namespace, :actor, :route, :key, :digest, 0, '{}', '', :now) ON CONFLICT DO NOTHING

-- name: request_key
SELECT digest, status, headers, answer FROM request_key
WHERE namespace = :namespace AND actor = :actor AND route = :route AND key = :key

-- name: answer_request_key
UPDATE request_key SET status = :status, headers = :headers, answer = :answer
WHERE namespace = :namespace AND actor = :actor AND route = :route AND key = :key

-- name: take_request_keys
-- `take_request_key` for the items of one request.
INSERT INTO request_key (namespace, actor, route, key, digest, status, headers, answer, created_at)
SELECT :namespace, :actor, :route, e.key, e.digest, 0, '{}', '', :now FROM EACH(:rows, key text, digest text) e WHERE true
ON CONFLICT DO NOTHING

-- name: request_keys
SELECT key, digest, status, answer FROM request_key
WHERE namespace = :namespace AND actor = :actor AND route = :route AND key AMONG(:keys, text)

-- name: answer_request_keys
UPDATE request_key SET status = :status, answer = e.answer FROM EACH(:rows, key text, answer text) e
WHERE request_key.namespace = :namespace AND request_key.actor = :actor AND request_key.route = :route
  AND request_key.key = e.key
