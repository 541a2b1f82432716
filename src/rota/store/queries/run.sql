-- name: step_places
-- Which step of which open run these executions are. With bounds, so that PostgreSQL opens only the partitions that may
-- contain the ids.
SELECT x.id, x.run, x.step, x.map_index, n.depth, n.namespace, n.app, n.job, n.version, n.graph FROM execution x CROSS JOIN run n ON n.id = x.run
WHERE x.id AMONG(:ids, uuid) AND x.id >= :lowest AND x.id <= :highest

-- name: lock_runs
-- The deepest first, and in the order of their ids, to avoid a deadlock.
SELECT id, root, parent, parent_step, parent_item, depth, version, opened_at, deadline, paused_at, namespace, app, job,
       graph, pinned, letters, stopping, undo, undo_of
FROM run WHERE id AMONG(:ids, uuid) ORDER BY depth DESC, id FOR UPDATE

-- name: depths_of
SELECT id, depth FROM run WHERE id AMONG(:ids, uuid)

-- name: runs_open
SELECT id, root, parent, parent_step, parent_item, depth, version, opened_at, deadline, paused_at, namespace, app, job,
       graph, pinned, letters, stopping, undo, undo_of
FROM run WHERE id AMONG(:ids, uuid)

-- name: definition_of_version
SELECT definition, digest FROM job_version
WHERE namespace = :namespace AND app = :app AND job = :job AND number = :version

-- name: openings
-- The runs that are about to open, each with the version in force and its parent run.
SELECT x.id, x.namespace, x.app, x.job, j.version, v.digest, x.priority, x.actor, x.headers, x.trace, x.run, x.step,
       x.map_index, p.depth, p.root, x.run_at, x.tick, x.overrides,
       CASE WHEN p.undo = x.id THEN 1 ELSE 0 END AS is_undo, p.undo_of,
       CASE WHEN p.retry_of IS NOT NULL THEN p.pinned END AS retry_pinned
FROM execution x
CROSS JOIN job j ON j.namespace = x.namespace AND j.app = x.app AND j.name = x.job
CROSS JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
LEFT JOIN run p ON p.id = x.run
WHERE x.id AMONG(:ids, uuid) AND x.id >= :lowest AND x.id <= :highest ORDER BY x.id

-- name: definitions_in_force
SELECT j.name, j.version, v.definition FROM job j
CROSS JOIN job_version v ON v.namespace = j.namespace AND v.app = j.app AND v.job = j.name AND v.number = j.version
WHERE j.namespace = :namespace AND j.app = :app AND j.name AMONG(:jobs, text) ORDER BY j.name

-- name: add_runs
INSERT INTO run (id, root, parent, parent_step, parent_item, depth, version, opened_at, look_at, deadline, namespace,
                 app, job, graph, pinned, letters, stopping, undo_of, retry_of)
SELECT id, root, parent, parent_step, parent_item, depth, version, :now, :look_at, deadline, namespace, app, job, graph,
       pinned, letters, stopping, undo_of, retry_of
FROM EACH(:rows, id uuid, root uuid, parent uuid, parent_step int, parent_item int, depth int, version bigint, deadline bigint, namespace text, app text, job text, graph text, pinned text, letters text, stopping text, undo_of uuid, retry_of uuid) e

-- name: add_steps
INSERT INTO step (run, number, item, execution)
SELECT run, number, item, execution FROM EACH(:rows, run uuid, number int, item int, execution uuid) e

-- name: update_runs
UPDATE run SET letters = e.letters, stopping = e.stopping, told = coalesce(e.told, run.told), undo = e.undo,
    look_at = e.look_at
FROM EACH(:rows, id uuid, letters text, stopping text, told int, undo uuid, look_at bigint) e WHERE run.id = e.id

-- name: end_runs
-- The caller holds the rows of `run`. Only such a caller touches the waiting row of an open run. Rows of `map_open` that
-- an expander may hold are left to it.
INSERT INTO finished (
    id, fence, final, status, reason, attempts, crashes, started_at, result, error, finished_at)
SELECT e.id, w.fence + 1, 1, e.status, e.reason, 1, w.crashes, n.opened_at, e.result, e.error, :now
FROM EACH(:ended, id uuid, status text, reason text, result text, error text, undoable int) e
CROSS JOIN waiting w ON w.id = e.id CROSS JOIN run n ON n.id = e.id;
INSERT INTO run_ended (id, root, parent, parent_step, parent_item, depth, version, opened_at, pinned, letters, stopping,
                       undo, undo_of, undoable)
SELECT n.id, n.root, n.parent, n.parent_step, n.parent_item, n.depth, n.version, n.opened_at, n.pinned, n.letters,
       n.stopping, n.undo, n.undo_of, e.undoable
FROM EACH(:ended, id uuid, status text, reason text, result text, error text, undoable int) e
CROSS JOIN run n ON n.id = e.id;
DELETE FROM blocker WHERE execution AMONG(:ids, uuid);
DELETE FROM waiting WHERE id AMONG(:ids, uuid);
DELETE FROM map_tally WHERE run AMONG(:ids, uuid);
DELETE FROM map_open WHERE run AMONG(:ids, uuid) AND look_at = 4611686018427387904;
DELETE FROM run WHERE id AMONG(:ids, uuid)

-- name: results_of_steps
SELECT s.run, s.number, f.result FROM EACH(:steps, run uuid, number int) e
CROSS JOIN step s ON s.run = e.run AND s.number = e.number
CROSS JOIN finished f ON f.id = s.execution AND f.final = 1

-- name: steps_of
SELECT number, item, execution FROM step WHERE run = :run AND number AMONG(:numbers, int) ORDER BY number, item

-- name: items_of
-- Every item of a map that has ended, in order.
SELECT s.item, f.status, f.result, f.error FROM step s CROSS JOIN finished f ON f.id = s.execution AND f.final = 1
WHERE s.run = :run AND s.number = :number ORDER BY s.item

-- name: arguments_of_runs
SELECT x.id, x.arguments, x.inputs, x.run, x.tick, x.run_at, x.job, coalesce(n.opened_at, o.opened_at) AS opened_at
FROM execution x LEFT JOIN run n ON n.id = x.id LEFT JOIN run_ended o ON o.id = x.id
WHERE x.id AMONG(:ids, uuid) AND x.id >= :lowest AND x.id <= :highest

-- name: lane_of_run
SELECT x.queue, w.lane FROM execution x CROSS JOIN waiting w ON w.id = x.id WHERE x.id = :id

-- name: lock_waits
-- In the order of the ids to avoid a deadlock.
SELECT id, run FROM waiting WHERE id AMONG(:ids, uuid) ORDER BY id FOR UPDATE

-- name: end_waits
-- The caller holds the rows of `waiting`.
INSERT INTO finished (id, fence, final, status, reason, attempts, crashes, result, error, finished_at)
SELECT e.id, w.fence + 1, 1, e.status, e.reason, w.attempts, w.crashes, e.result, e.error, :now
FROM EACH(:ends, id uuid, status text, reason text, result text, error text) e CROSS JOIN waiting w ON w.id = e.id;
DELETE FROM blocker WHERE execution AMONG(:ids, uuid);
DELETE FROM subscription WHERE execution AMONG(:ids, uuid);
DELETE FROM waiting WHERE id AMONG(:ids, uuid)

-- name: open_approvals
-- The open approvals of these runs, in the order of the steps.
SELECT b.key, b.execution, x.step, x.arguments FROM blocker b CROSS JOIN execution x ON x.id = b.execution
WHERE b.kind = 'approval' AND b.key AMONG(:runs, text) ORDER BY b.key, x.step

-- name: end_of_step
SELECT f.status, f.result, f.finished_at FROM step s CROSS JOIN finished f ON f.id = s.execution AND f.final = 1
WHERE s.run = :run AND s.number = :number

-- name: waits_among
SELECT id, job, arguments FROM execution WHERE id AMONG(:ids, uuid)

-- name: add_tallies
INSERT INTO map_tally (run, number, shard, open, success, failed, cancelled, skipped)
SELECT run, number, shard, open, success, 0, 0, 0
FROM EACH(:rows, run uuid, number int, shard int, open int, success int) e

-- name: lock_tallies
-- In the order of the key to avoid a deadlock.
SELECT m.run FROM map_tally m CROSS JOIN EACH(:keys, run uuid, number int, shard int) k
    ON k.run = m.run AND k.number = m.number AND k.shard = m.shard
ORDER BY m.run, m.number, m.shard FOR UPDATE OF m

-- name: count_items
-- Returns what is left of each shard.
UPDATE map_tally SET open = map_tally.open - e.ended, success = map_tally.success + e.success,
    failed = map_tally.failed + e.failed, cancelled = map_tally.cancelled + e.cancelled,
    skipped = map_tally.skipped + e.skipped
FROM EACH(:rows, run uuid, number int, shard int, ended int, success int, failed int, cancelled int, skipped int) e
WHERE map_tally.run = e.run AND map_tally.number = e.number AND map_tally.shard = e.shard
RETURNING map_tally.run, map_tally.number, map_tally.open, map_tally.failed + map_tally.cancelled AS bad

-- name: tallies
SELECT run, number, CAST(sum(open) AS bigint), CAST(sum(success) AS bigint), CAST(sum(failed) AS bigint),
       CAST(sum(cancelled) AS bigint), CAST(sum(skipped) AS bigint)
FROM map_tally WHERE run AMONG(:runs, uuid) GROUP BY run, number

-- name: open_maps
-- A map that has a row already keeps it: its expander sees by itself that the map must stop.
INSERT INTO map_open (run, number, width, next_item, look_at, first_id)
SELECT run, number, width, next_item, :now, first_id
FROM EACH(:rows, run uuid, number int, width int, next_item int, first_id uuid) e WHERE true
ON CONFLICT DO NOTHING

-- name: next_maps
-- The maps that have waited the longest. One expander at a time for each.
SELECT run, number, width, next_item, told_item, first_id FROM map_open
WHERE look_at <= :now ORDER BY look_at, run, number LIMIT :most FOR UPDATE SKIP LOCKED

-- name: note_map
UPDATE map_open SET next_item = :next_item, told_item = :told_item, first_id = :first_id, look_at = :look_at
WHERE run = :run AND number = :number

-- name: park_map
UPDATE map_open SET look_at = :look_at WHERE run = :run AND number = :number

-- name: close_map
DELETE FROM map_open WHERE run = :run AND number = :number

-- name: unclaimed
SELECT 1 FROM ready WHERE id = :id UNION ALL SELECT 1 FROM waiting WHERE id = :id

-- name: places_of_map
-- The first item without an execution, null if there is none, and how many items wait for others to end.
SELECT (SELECT next_item FROM map_open WHERE run = :run AND number = :number),
       (SELECT count(*) FROM blocker WHERE kind = :kind AND key = :key)

-- name: items_from
SELECT item, execution FROM step WHERE run = :run AND number = :number AND item >= :item ORDER BY item LIMIT :most

-- name: next_untold_run
SELECT id, told FROM run WHERE told IS NOT NULL ORDER BY id LIMIT 1

-- name: note_told
UPDATE run SET told = :told WHERE id = :id

-- name: paused_runs
SELECT id FROM run WHERE paused_at IS NOT NULL

-- name: ancestors_of
-- Each run with all its ancestors.
WITH RECURSIVE above (id, ancestor) AS (
    SELECT id, id FROM run WHERE id AMONG(:ids, uuid)
    UNION ALL
    SELECT a.id, n.parent FROM above a CROSS JOIN run n ON n.id = a.ancestor WHERE n.parent IS NOT NULL)
SELECT id, ancestor FROM above

-- name: pause_run
UPDATE run SET paused_at = :now, paused_by = :actor, paused_note = :note WHERE id = :id

-- name: resume_run
UPDATE run SET paused_at = NULL, paused_by = NULL, paused_note = NULL WHERE id = :id

-- name: move_run_deadlines
UPDATE run SET deadline = deadline + :by WHERE id AMONG(:ids, uuid) AND deadline IS NOT NULL RETURNING id, deadline

-- name: runs_below
-- The run itself and all open runs below it.
WITH RECURSIVE below (id) AS (
    SELECT id FROM run WHERE id = :id UNION ALL SELECT n.id FROM below b CROSS JOIN run n ON n.parent = b.id)
SELECT id FROM below

-- name: past_run_deadline
SELECT id FROM run WHERE id AMONG(:ids, uuid) AND deadline <= :now AND stopping IS NULL AND undo IS NULL

-- name: runs_to_look_at
SELECT id, root, parent, parent_step, parent_item, depth, version, opened_at, deadline, paused_at, namespace, app, job,
       graph, pinned, letters, stopping, undo, undo_of
FROM run WHERE look_at <= :until ORDER BY look_at, id LIMIT :most FOR UPDATE SKIP LOCKED

-- name: paused_among
-- Locked, so that a resume which is about to release the steps waits for the steps that are put behind the pause.
SELECT id FROM run WHERE id AMONG(:ids, uuid) AND paused_at IS NOT NULL ORDER BY id FOR SHARE

-- name: note_looks
UPDATE run SET look_at = e.look_at FROM EACH(:rows, id uuid, look_at bigint) e WHERE run.id = e.id

-- name: look_at_steps
-- The status of each step that has ended, and when to look for the end of the others.
SELECT s.run, s.number, f.status, x.deadline, n.look_at FROM EACH(:steps, run uuid, number int) e
CROSS JOIN step s ON s.run = e.run AND s.number = e.number
LEFT JOIN finished f ON f.id = s.execution AND f.final = 1
LEFT JOIN execution x ON x.id = s.execution
LEFT JOIN run n ON n.id = s.execution

-- name: ended_run
SELECT o.id, x.namespace, x.app, x.job, x.queue, x.priority, x.arguments, x.tags, x.headers, o.parent, o.version,
       v.digest, j.version AS latest, l.digest AS latest_digest, o.pinned, o.letters, o.stopping, o.undo,
       coalesce(d.base, j.base) AS base, j.base AS latest_base
FROM run_ended o
CROSS JOIN execution x ON x.id = o.id
CROSS JOIN job j ON j.namespace = x.namespace AND j.app = x.app AND j.name = x.job
CROSS JOIN job_version v ON v.namespace = x.namespace AND v.app = x.app AND v.job = x.job AND v.number = o.version
CROSS JOIN job_version l ON l.namespace = x.namespace AND l.app = x.app AND l.job = x.job AND l.number = j.version
LEFT JOIN deleted_job d ON d.namespace = x.namespace AND d.name = x.job AND d.app = x.app
    AND d.base < o.version AND d.last >= o.version
WHERE o.id = :id AND x.namespace = :namespace

-- name: lock_kept
-- Retention skips executions that are locked, and those that an open run refers to.
SELECT x.id FROM step s CROSS JOIN execution x ON x.id = s.execution
WHERE s.run = :run AND s.number AMONG(:numbers, int) ORDER BY x.id FOR KEY SHARE OF x

-- name: missing_result
SELECT s.number FROM step s
WHERE s.run = :run AND s.number AMONG(:numbers, int)
  AND NOT EXISTS (SELECT 1 FROM finished f WHERE f.id = s.execution AND f.final = 1)
ORDER BY s.number LIMIT 1

-- name: keep_steps
INSERT INTO step (run, number, item, execution)
SELECT :run, e.number, s.item, s.execution FROM EACH(:rows, old_number int, number int) e
CROSS JOIN step s ON s.run = :old AND s.number = e.old_number

-- name: keep_items
-- The items of a map that succeeded in an earlier run.
INSERT INTO step (run, number, item, execution)
SELECT :run, :number, s.item, s.execution FROM step s
CROSS JOIN finished f ON f.id = s.execution AND f.final = 1 AND f.status = 'success'
WHERE s.run = :old AND s.number = :old_number

-- name: kept_items
SELECT item FROM step WHERE run = :run AND number = :number AND item >= :low AND item < :high ORDER BY item

-- name: ended_among
-- Those of the executions that are runs which have ended.
SELECT id, letters, undo FROM run_ended WHERE id AMONG(:ids, uuid)

-- name: run_of_step
-- The run of a step, open or not, with the version of its workflow.
SELECT x.id, x.run, n.root, x.step, w.namespace, w.app, w.job, n.version, v.digest, n.undo_of FROM execution x
CROSS JOIN (SELECT id, root, version, undo_of FROM run
            UNION ALL SELECT id, root, version, undo_of FROM run_ended) n ON n.id = x.run
CROSS JOIN execution w ON w.id = x.run
CROSS JOIN job_version v ON v.namespace = w.namespace AND v.app = w.app AND v.job = w.job AND v.number = n.version
WHERE x.id = :id

-- name: undoing_run
-- For an execution that is undoing or is the undo of a run: the id of an open run whose undos can be paused.
SELECT n.id FROM run n WHERE n.id = :id AND (n.undo IS NOT NULL OR n.undo_of IS NOT NULL)
UNION ALL SELECT n.id FROM execution x CROSS JOIN run n ON n.id = x.run AND n.undo = x.id WHERE x.id = :id

-- name: queue_of
SELECT queue, priority FROM execution WHERE id = :id

-- name: end_of
SELECT status FROM finished WHERE id = :id AND final = 1

-- name: run_to_undo
-- An open run, or one that has ended, with the digest of its version.
SELECT n.id, n.version, v.digest, n.pinned, n.letters FROM (
    SELECT id, version, pinned, letters FROM run UNION ALL SELECT id, version, pinned, letters FROM run_ended) n
CROSS JOIN execution x ON x.id = n.id
CROSS JOIN job_version v ON v.namespace = x.namespace AND v.app = x.app AND v.job = x.job AND v.number = n.version
WHERE n.id = :id

-- name: ended_sub_run
-- The ended sub-run of a step, with the digest of its version. No row if the execution ended before it opened as a run.
SELECT o.id, o.version, v.digest, o.pinned, o.letters, o.stopping, o.undo FROM step s
CROSS JOIN run_ended o ON o.id = s.execution
CROSS JOIN execution x ON x.id = o.id
CROSS JOIN job_version v ON v.namespace = x.namespace AND v.app = x.app AND v.job = x.job AND v.number = o.version
WHERE s.run = :run AND s.number = :number AND s.item = :item

-- name: pinned_of_ended
SELECT pinned FROM run_ended WHERE id = :id

-- name: letters_of_ended
SELECT letters FROM run_ended WHERE id = :id

-- name: items_to_undo
-- The items of a step to undo (a step that is not a map has one item, 0): those that succeeded, and with `failed` also
-- those that started and did not succeed. An attempt that failed before its function was called has not started. For a
-- sub-workflow, only the sub-runs that have steps to undo.
SELECT s.item FROM step s CROSS JOIN finished f ON f.id = s.execution AND f.final = 1
WHERE s.run = :run AND s.number = :number AND s.item >= :low AND s.item < :high
  AND (f.status = 'success'
       OR :failed = 1 AND (f.crashes > 0 OR EXISTS (
           SELECT 1 FROM finished a WHERE a.id = s.execution AND a.started_at IS NOT NULL
              AND a.reason NOT IN ('bad_arguments', 'inputs_too_large', 'not_begun'))))
  AND (:workflow = 0 OR EXISTS (SELECT 1 FROM run_ended o WHERE o.id = s.execution AND o.undoable = 1))
ORDER BY s.item LIMIT :most

-- name: width_of_map
-- The width as far as items were placed: one more than the highest of them.
SELECT coalesce(max(item), -1) + 1 FROM step WHERE run = :run AND number = :number

-- name: results_to_undo
-- For each of these executions of undos, the result of the execution that it undoes; null if that did not succeed.
SELECT x.id, f.result FROM execution x CROSS JOIN run n ON n.id = x.run
CROSS JOIN step s ON s.run = n.undo_of AND s.number = x.step AND s.item = coalesce(x.map_index, 0)
CROSS JOIN finished f ON f.id = s.execution AND f.final = 1
WHERE x.id AMONG(:ids, uuid) AND x.id >= :lowest AND x.id <= :highest

-- name: execution_of_step
SELECT execution FROM step WHERE run = :run AND number = :number AND item = :item

-- name: error_of
SELECT error FROM finished WHERE id = :id AND final = 1
