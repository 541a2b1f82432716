-- name: add_action
INSERT INTO action (id, namespace, actor, verb, target, filter, options, note, at_most, as_of, rate, status, created_at, next_at)
VALUES (:id, :namespace, :actor, :verb, :target, :filter, :options, :note, :at_most, :as_of, :rate, 'collecting', :now, :now)

-- name: action
SELECT a.id, a.namespace, a.actor, a.verb, a.target, a.filter, a.options, a.note, a.at_most, a.as_of, a.rate, a.status, a.total,
       a.done, a.failed, a.mark, a.errors, a.created_at, a.started_at, a.completed_at, a.cancel_at
FROM action a WHERE a.id = :id AND a.namespace = :namespace

-- name: actions_listed
SELECT a.id, a.namespace, a.actor, a.verb, a.target, a.filter, a.options, a.note, a.at_most, a.as_of, a.rate, a.status, a.total,
       a.done, a.failed, a.mark, a.errors, a.created_at, a.started_at, a.completed_at, a.cancel_at
FROM action a WHERE a.namespace = :namespace AND a.id PAST :position ORDER BY a.id WAY LIMIT :most

-- name: action_due
-- Locks the action, so that only one supervisor or server works on it at a time.
SELECT a.id, a.namespace, a.actor, a.verb, a.target, a.filter, a.options, a.note, a.at_most, a.as_of, a.rate, a.status, a.total,
       a.done, a.failed, a.mark, a.errors, a.created_at, a.started_at, a.completed_at, a.cancel_at
FROM action a WHERE a.next_at <= :now ORDER BY a.next_at LIMIT 1 FOR UPDATE OF a SKIP LOCKED

-- name: add_action_items
INSERT INTO action_item (action, position, subject)
SELECT :id, e.position, e.subject FROM EACH(:rows, position bigint, subject text) e WHERE true

-- name: action_items
SELECT i.subject FROM action_item i WHERE i.action = :id AND i.position >= :low AND i.position < :high ORDER BY i.position

-- name: update_action
UPDATE action SET status = :status, total = :total, done = :done, failed = :failed, mark = :mark, errors = :errors,
       started_at = :started_at, completed_at = :completed_at, next_at = :next_at WHERE id = :id

-- name: drop_action_items
DELETE FROM action_item WHERE action = :id

-- name: cancel_action
UPDATE action SET cancel_at = :now, next_at = :now
WHERE id = :id AND namespace = :namespace AND next_at IS NOT NULL AND cancel_at IS NULL

-- name: drop_actions
DELETE FROM action WHERE id IN (
    SELECT a.id FROM action a WHERE a.completed_at < :bound ORDER BY a.id LIMIT :most)

-- name: dead_before
SELECT d.id FROM dead d WHERE d.namespace = :namespace AND d.id AMONG(:ids, uuid) AND d.failed_at <= :as_of
