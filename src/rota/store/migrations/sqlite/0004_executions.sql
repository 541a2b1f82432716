-- What the lists of executions are read from.

-- One row for each tag of an execution.
CREATE TABLE tag (
    namespace TEXT NOT NULL,
    tag       TEXT NOT NULL,
    id        TEXT NOT NULL,
    PRIMARY KEY (namespace, tag, id)
) WITHOUT ROWID;
-- Finds the rows of an execution that is deleted.
CREATE INDEX tag_id ON tag (id);
INSERT INTO tag (namespace, tag, id)
SELECT DISTINCT x.namespace, t.value, x.id FROM execution x, json_each(x.tags) t
WHERE x.tags IS NOT NULL AND json_valid(x.tags) AND t.type = 'text';

CREATE INDEX execution_parent ON execution (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX execution_replay ON execution (replay_of, id) WHERE replay_of IS NOT NULL;
CREATE INDEX execution_run ON execution (run, id) WHERE run IS NOT NULL;
CREATE INDEX dead_namespace ON dead (namespace, id);
CREATE INDEX dead_fingerprint ON dead (namespace, fingerprint, id) WHERE fingerprint IS NOT NULL;
