-- name: add_app
INSERT INTO app (namespace, name) VALUES (:namespace, :app) ON CONFLICT DO NOTHING

-- name: lock_app
SELECT deploy FROM app WHERE namespace = :namespace AND name = :app FOR UPDATE

-- name: applied_deploy
SELECT deploy FROM app WHERE namespace = :namespace AND name = :app

-- name: set_applied_deploy
UPDATE app SET deploy = :number WHERE namespace = :namespace AND name = :app

-- name: declare_deploy
UPDATE deploy SET declared_at = :now WHERE namespace = :namespace AND app = :app AND digest = :digest
RETURNING number

-- name: add_deploy
INSERT INTO deploy (namespace, app, number, precedence, digest, content, created_at, declared_at)
SELECT :namespace, :app, coalesce(max(d.number), 0) + 1, coalesce(max(d.precedence), 0) + 1, :digest, :content, :now,
       :now
FROM deploy d WHERE d.namespace = :namespace AND d.app = :app
RETURNING number

-- name: put_deploy_first
UPDATE deploy SET precedence = (
    SELECT max(d.precedence) + 1 FROM deploy d WHERE d.namespace = :namespace AND d.app = :app)
WHERE namespace = :namespace AND app = :app AND number = :number

-- name: deploy_content
SELECT content FROM deploy WHERE namespace = :namespace AND app = :app AND number = :number

-- name: candidate_deploys
-- The deploys that can be in force: those of live workers, and the one that is in force now.
SELECT d.number, d.precedence, coalesce(l.workers, 0) AS workers,
       (SELECT max(w.stopped_at) FROM worker w
        WHERE w.namespace = :namespace AND w.app = :app AND w.deploy = d.number) AS left_at
FROM deploy d LEFT JOIN (
    SELECT w.deploy, count(*) AS workers FROM worker w
    WHERE w.namespace = :namespace AND w.app = :app AND w.stopped_at IS NULL GROUP BY w.deploy) l ON l.deploy = d.number
WHERE d.namespace = :namespace AND d.app = :app
  AND (l.workers > 0
       OR d.number = (SELECT a.deploy FROM app a WHERE a.namespace = :namespace AND a.name = :app))

-- name: deploys_of_workers
SELECT DISTINCT deploy FROM worker WHERE id AMONG(:workers, bigint) AND deploy IS NOT NULL ORDER BY deploy

-- name: deploys
SELECT d.app, d.number, d.digest, d.created_at, d.declared_at, d.content,
       CASE WHEN a.deploy = d.number THEN 1 ELSE 0 END AS in_force,
       (SELECT count(*) FROM worker w
        WHERE w.namespace = d.namespace AND w.app = d.app AND w.deploy = d.number AND w.stopped_at IS NULL) AS workers,
       (SELECT min(w.started_at) FROM worker w
        WHERE w.namespace = d.namespace AND w.app = d.app AND w.deploy = d.number AND w.stopped_at IS NULL) AS live_since
FROM deploy d JOIN app a ON a.namespace = d.namespace AND a.name = d.app
WHERE d.namespace = :namespace ORDER BY d.app, d.precedence DESC

-- name: drop_deploys
DELETE FROM deploy WHERE declared_at < :bound
  AND NOT EXISTS (SELECT 1 FROM app a WHERE a.namespace = deploy.namespace AND a.name = deploy.app
                  AND a.deploy = deploy.number)
  AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.namespace = deploy.namespace AND w.app = deploy.app
                  AND w.deploy = deploy.number)
