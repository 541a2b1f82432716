-- What the lists of executions are read from.

-- One row for each tag of an execution.
CREATE TABLE tag (
    namespace text NOT NULL,
    tag       text NOT NULL,
    id        uuid NOT NULL,
    PRIMARY KEY (namespace, tag, id)
);
-- Finds the rows of an execution that is deleted.
CREATE INDEX tag_id ON tag (id);
INSERT INTO tag (namespace, tag, id)
SELECT DISTINCT x.namespace, t.tag, x.id FROM execution x, json_array_elements_text(x.tags::json) t (tag)
WHERE x.tags IS NOT NULL;

CREATE INDEX execution_parent ON execution (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX execution_replay ON execution (replay_of, id) WHERE replay_of IS NOT NULL;
CREATE INDEX execution_run ON execution (run, id) WHERE run IS NOT NULL;
CREATE INDEX dead_namespace ON dead (namespace, id);
CREATE INDEX dead_fingerprint ON dead (namespace, fingerprint, id) WHERE fingerprint IS NOT NULL;

-- The function `enqueue` writes tags, too. Its text is changed in place: its owner may have made it SECURITY DEFINER.
DO $migration$
DECLARE
    anchor CONSTANT text := '    -- The edges of its dependencies are ignored and cleared.';
    before text := pg_get_functiondef((SELECT oid FROM pg_proc
                                       WHERE proname = 'enqueue' AND pronamespace = current_schema()::regnamespace));
    after  text := replace(before, anchor, '    IF enqueue.tags IS NOT NULL THEN
        INSERT INTO tag (namespace, tag, id)
        SELECT DISTINCT enqueue.namespace, t.name, id FROM unnest(enqueue.tags) t (name);
    END IF;
' || anchor);
BEGIN
    ASSERT before <> after, 'the function enqueue has another text than expected';
    EXECUTE after;
END
$migration$;
