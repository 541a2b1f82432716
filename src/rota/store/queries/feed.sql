-- The values that open streams of the HTTP API show. One statement of each kind serves all streams of a server.

-- name: feed_lanes
-- How much each queue of these namespaces has, counted up to a bound in each lane.
SELECT l.namespace, l.queue,
       CAST(sum((SELECT count(*) FROM (SELECT 1 AS one FROM ready r WHERE r.lane = l.id LIMIT :most) c)) AS bigint) AS queued,
       CAST(sum(coalesce(u.count, 0)) AS bigint) AS running
FROM lane l LEFT JOIN (SELECT lane, count(*) AS count FROM running GROUP BY lane) u ON u.lane = l.id
WHERE l.namespace AMONG(:namespaces, text) GROUP BY l.namespace, l.queue ORDER BY l.namespace, l.queue

-- name: feed_workers
SELECT n.name, count(*) AS workers, CAST(sum(w.concurrency) AS bigint) AS slots
FROM namespace n CROSS JOIN worker w ON SERVES(w, n.name)
WHERE LIVE(w) AND n.name AMONG(:namespaces, text) GROUP BY n.name

-- name: feed_changes
SELECT a.id, a.namespace, a.action, a.subject, a.actor, a.at FROM audit a
WHERE a.id > :after AND a.namespace AMONG(:namespaces, text) ORDER BY a.id LIMIT :most

-- name: newest_change
SELECT coalesce(max(id), 0) FROM audit

-- name: feed_executions
SELECT s.id, s.namespace, s.status, s.reason, s.fence, n.done, n.total, coalesce(o.letters, e.letters, '') AS letters
FROM state s LEFT JOIN note n ON n.id = s.id LEFT JOIN run o ON o.id = s.id LEFT JOIN run_ended e ON e.id = s.id
WHERE s.id AMONG(:ids, uuid)

-- name: feed_outcomes
-- By minute: the statistics that are folded, and those that are not yet.
SELECT c.namespace, c.minute, CAST(sum(c.success) AS bigint) AS success, CAST(sum(c.failed) AS bigint) AS failed,
       CAST(sum(c.cancelled) AS bigint) AS cancelled, CAST(sum(c.skipped) AS bigint) AS skipped,
       CAST(sum(c.retries) AS bigint) AS retries
FROM (
    SELECT s.namespace, s.at AS minute, s.success, s.failed, s.cancelled, s.skipped, s.retries FROM stat s
    WHERE s.namespace AMONG(:namespaces, text) AND s.step_s = 60 AND s.at >= :since
    UNION ALL
    SELECT l.namespace, d.at - d.at % 60000000, CASE d.outcome WHEN 'success' THEN d.count ELSE 0 END,
           CASE d.outcome WHEN 'failed' THEN d.count ELSE 0 END, CASE d.outcome WHEN 'cancelled' THEN d.count ELSE 0 END,
           CASE d.outcome WHEN 'skipped' THEN d.count ELSE 0 END, CASE d.outcome WHEN 'retries' THEN d.count ELSE 0 END
    FROM (SELECT at, lane, count, outcome FROM stat_delta LIMIT :most) d CROSS JOIN lane l ON l.id = d.lane
    WHERE d.at >= :since AND l.namespace AMONG(:namespaces, text)) c
GROUP BY c.namespace, c.minute
