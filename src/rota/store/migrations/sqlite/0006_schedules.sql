-- Revisions of queues and calendars: every change adds one, pauses too. The HTTP API shows them as ETags.
ALTER TABLE queue ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE calendar ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;

-- Lists of schedules are read page by page, in the order of names.
CREATE INDEX schedule_listed ON schedule (namespace, name, app) WHERE removed_at IS NULL;
