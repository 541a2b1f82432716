-- name: look
-- Everything that an idle supervisor has to know, in one statement: whether upkeep has something to do, and the lowest
-- ready rank in each of its lanes. A heartbeat in the future means that the clock was set back, so the lease is ignored.
-- The positions of the supervisor's workers among all workers decide which schedules it fires.
SELECT CAST(:now AS bigint) AS now, (SELECT min(run_at) FROM scheduled) AS next_due_at,
       (SELECT min(deadline) FROM expiry) AS next_deadline,
       EXISTS (SELECT 1 FROM worker WHERE stopped_at IS NULL
               AND (lease_until <= :now OR heartbeat_at > CAST(:now AS bigint) + :lease)) AS dead_workers,
       (SELECT min(t.at) FROM (
           SELECT (SELECT min(d.next_at) FROM hand d WHERE d.shard = m.shard) + m.patience AS at
           FROM EACH(:shards, shard int, patience bigint) m) t) AS next_tick_at,
       EXISTS (SELECT 1 FROM hand WHERE waits_for IS NOT NULL) OR EXISTS (SELECT 1 FROM callback_open) AS has_followers,
       EXISTS (SELECT 1 FROM lifted_blocker) AS has_lifted,
       (SELECT min(t.at) FROM (
           SELECT min(look_at) AS at FROM map_open
           UNION ALL SELECT min(look_at) FROM run
           UNION ALL SELECT CASE WHEN EXISTS (SELECT 1 FROM run WHERE told IS NOT NULL) THEN 0 END) t) AS next_run_at,
       -- 2: upkeep has events to deliver or waits to settle; 1: there are subscriptions; 0: there are none.
       CASE WHEN EXISTS (SELECT 1 FROM event_open) OR EXISTS (SELECT 1 FROM subscription WHERE unsure IS NOT NULL) THEN 2
            WHEN EXISTS (SELECT 1 FROM subscription) THEN 1 ELSE 0 END AS events,
       (SELECT min(next_at) FROM action WHERE next_at IS NOT NULL) AS next_action_at,
       (SELECT count(*) FROM worker WHERE stopped_at IS NULL) AS workers,
       (SELECT CAST(LISTING(p.place) AS text) FROM (
           SELECT (SELECT count(*) FROM worker v WHERE v.stopped_at IS NULL AND v.id < w.id) AS place
           FROM worker w WHERE w.id AMONG(:ours, bigint) AND w.stopped_at IS NULL) p) AS places,
       CASE WHEN :with_ready THEN (
           SELECT CAST(LISTING(PAIR(h.id, h.head)) AS text) FROM (
               SELECT l.id, (SELECT r.rank FROM ready r WHERE r.lane = l.id ORDER BY r.rank, r.id LIMIT 1) AS head
               FROM lane l CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
               WHERE l.namespace AMONG(:namespaces, text) AND (:all_apps OR l.app AMONG(:apps, text)) AND (:all_queues OR l.queue AMONG(:queues, text))
                 AND q.paused_at IS NULL) h
           WHERE h.head IS NOT NULL) END AS ready

-- name: due
SELECT s.id, s.lane, s.priority, s.run_at, q.policy
FROM scheduled s CROSS JOIN lane l ON l.id = s.lane CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE s.run_at <= :now ORDER BY s.run_at, s.id LIMIT :most FOR UPDATE OF s SKIP LOCKED

-- name: run_early
UPDATE execution SET run_at = :now WHERE id = :id AND run_at > :now

-- name: due_later
SELECT s.id, s.lane, s.priority, s.run_at, q.policy
FROM scheduled s CROSS JOIN lane l ON l.id = s.lane CROSS JOIN queue q ON q.namespace = l.namespace AND q.name = l.queue
WHERE s.id = :id FOR UPDATE OF s

-- name: promote
INSERT INTO ready (lane, rank, id, fence, attempts, crashes, first_start_at, run)
SELECT s.lane, e.rank, s.id, s.fence, s.attempts, s.crashes, s.first_start_at, s.run
FROM EACH(:rows, id uuid, rank bigint) e CROSS JOIN scheduled s ON s.id = e.id;
DELETE FROM scheduled WHERE id AMONG(:ids, uuid)

-- name: expiries_due
SELECT id FROM expiry WHERE deadline <= :now ORDER BY deadline, id LIMIT :most FOR UPDATE SKIP LOCKED

-- name: past_deadline
SELECT id, job FROM execution WHERE id AMONG(:ids, uuid) AND deadline <= :now

-- name: drop_expiries
DELETE FROM expiry WHERE deadline <= :now AND id AMONG(:ids, uuid)

-- name: workers_expired
SELECT id, name FROM worker
WHERE stopped_at IS NULL AND (lease_until <= :expired_at OR heartbeat_at > CAST(:now AS bigint) + :lease)
ORDER BY id LIMIT :most FOR UPDATE SKIP LOCKED
