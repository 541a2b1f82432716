-- Jobs as data: jobs that the HTTP API defines beside those of code, deleted jobs, and templates.

-- `origin` is code, api or file. `revision` counts every change of the job, its pauses too. Versions up to `base` are of
-- deleted jobs that had the same name. `runs` is what a worker must have among its jobs to run this one: null for the
-- job itself, `*command` or `*http` for a job that is run from its definition, else the name of a function's job.
ALTER TABLE job ADD COLUMN origin TEXT NOT NULL DEFAULT 'code';
ALTER TABLE job ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE job ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN runs TEXT;
ALTER TABLE job ADD COLUMN created_at INTEGER;
ALTER TABLE job ADD COLUMN created_by TEXT;
ALTER TABLE job ADD COLUMN updated_at INTEGER;
CREATE INDEX job_name ON job (namespace, name, app);

-- `source` is the definition as the API takes it, with its schedules, as JSON; null for versions of code.
ALTER TABLE job_version ADD COLUMN source TEXT;
ALTER TABLE job_version ADD COLUMN created_by TEXT;
-- A JSON object: the name and the version of the template that it was made of.
ALTER TABLE job_version ADD COLUMN template TEXT;

ALTER TABLE lane ADD COLUMN runs TEXT;

-- A job that was deleted: its name may be used again, its history is found by its id. Its versions are those from
-- `base` + 1 to `last`.
CREATE TABLE deleted_job (
    id          TEXT PRIMARY KEY,
    namespace   TEXT NOT NULL,
    app         TEXT NOT NULL,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    base        INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    origin      TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    created_at  INTEGER,
    created_by  TEXT,
    deleted_at  INTEGER NOT NULL,
    deleted_by  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX deleted_job_name ON deleted_job (namespace, name, app, id);

-- A definition with parameters, of which jobs are made. `version` counts its changes.
CREATE TABLE template (
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    content    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;
