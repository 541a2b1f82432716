-- Actions on many executions, runs, events, schedules or jobs at once.

-- `filter` and `options` are JSON, `errors` a JSON list. The ids are collected first, up to `mark`, then acted on in the
-- order of their positions: the first `done` + `failed` of them have been. `next_at` is when an open action is looked at
-- next; null if it has ended.
CREATE TABLE action (
    id           uuid PRIMARY KEY,
    at_most      bigint NOT NULL,
    as_of        bigint NOT NULL,
    created_at   bigint NOT NULL,
    started_at   bigint,
    completed_at bigint,
    cancel_at    bigint,
    next_at      bigint,
    total        bigint NOT NULL DEFAULT 0,
    done         bigint NOT NULL DEFAULT 0,
    failed       bigint NOT NULL DEFAULT 0,
    rate         double precision,
    namespace    text NOT NULL,
    actor        text NOT NULL,
    verb         text NOT NULL,
    target       text NOT NULL,
    filter       text NOT NULL,
    options      text NOT NULL,
    note         text,
    status       text NOT NULL,
    mark         text,
    errors       text NOT NULL DEFAULT '[]'
);
CREATE INDEX action_namespace ON action (namespace, id);
CREATE INDEX action_next ON action (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE action_item (
    action   uuid NOT NULL,
    position bigint NOT NULL,
    subject  text NOT NULL,
    PRIMARY KEY (action, position)
);
