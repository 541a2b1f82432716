-- Which supervisor a worker process belongs to, and how few and how many of its kind that may have.
ALTER TABLE worker ADD COLUMN supervisor text NOT NULL DEFAULT '';
ALTER TABLE worker ADD COLUMN least bigint NOT NULL DEFAULT 1;
ALTER TABLE worker ADD COLUMN most bigint NOT NULL DEFAULT 1;
