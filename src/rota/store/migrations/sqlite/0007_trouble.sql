-- Why a worker cannot start processes at present: a JSON object of reasons by what they are for; null if it can.
ALTER TABLE worker ADD COLUMN trouble TEXT;
