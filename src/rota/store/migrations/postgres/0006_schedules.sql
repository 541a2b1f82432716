-- Revisions of queues and calendars: every change adds one, pauses too. The HTTP API shows them as ETags.
ALTER TABLE queue ADD COLUMN revision bigint NOT NULL DEFAULT 1;
ALTER TABLE calendar ADD COLUMN revision bigint NOT NULL DEFAULT 1;

-- Lists of schedules are read page by page, in the order of names. That order must not depend on the locale.
CREATE INDEX schedule_listed ON schedule (namespace, name COLLATE "C", app COLLATE "C") WHERE removed_at IS NULL;
