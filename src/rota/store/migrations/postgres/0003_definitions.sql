-- Jobs as data: jobs that the HTTP API defines beside those of code, deleted jobs, and templates.

-- `origin` is code, api or file. `revision` counts every change of the job, its pauses too. Versions up to `base` are of
-- deleted jobs that had the same name. `runs` is what a worker must have among its jobs to run this one: null for the
-- job itself, `*command` or `*http` for a job that is run from its definition, else the name of a function's job.
ALTER TABLE job ADD COLUMN origin text NOT NULL DEFAULT 'code';
ALTER TABLE job ADD COLUMN revision bigint NOT NULL DEFAULT 1;
ALTER TABLE job ADD COLUMN base bigint NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN runs text;
ALTER TABLE job ADD COLUMN created_at bigint;
ALTER TABLE job ADD COLUMN created_by text;
ALTER TABLE job ADD COLUMN updated_at bigint;
CREATE INDEX job_name ON job (namespace, name, app);

-- `source` is the definition as the API takes it, with its schedules, as JSON; null for versions of code.
ALTER TABLE job_version ADD COLUMN source text;
ALTER TABLE job_version ADD COLUMN created_by text;
-- A JSON object: the name and the version of the template that it was made of.
ALTER TABLE job_version ADD COLUMN template text;

ALTER TABLE lane ADD COLUMN runs text;

-- A job that was deleted: its name may be used again, its history is found by its id. Its versions are those from
-- `base` + 1 to `last`.
CREATE TABLE deleted_job (
    id          uuid PRIMARY KEY,
    namespace   text NOT NULL,
    app         text NOT NULL,
    name        text NOT NULL,
    version     bigint NOT NULL,
    base        bigint NOT NULL,
    last        bigint NOT NULL,
    origin      text NOT NULL,
    revision    bigint NOT NULL,
    created_at  bigint,
    created_by  text,
    deleted_at  bigint NOT NULL,
    deleted_by  text NOT NULL
);
CREATE INDEX deleted_job_name ON deleted_job (namespace, name, app, id);

-- A definition with parameters, of which jobs are made. `version` counts its changes.
CREATE TABLE template (
    namespace  text NOT NULL,
    name       text NOT NULL,
    version    bigint NOT NULL,
    content    text NOT NULL,
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (namespace, name)
);
