-- A worker without an app may serve several namespaces: a JSON array of the others; `namespace` is the first one.
ALTER TABLE worker ADD COLUMN others text NOT NULL DEFAULT '[]';
