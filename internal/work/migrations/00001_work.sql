-- +goose Up

-- Times are Unix milliseconds, UTC, by the clock of the store. A row is there until the platform
-- has what it stands for.
CREATE TABLE work (
	site         TEXT NOT NULL,
	kind         TEXT NOT NULL,
	key          TEXT NOT NULL,
	title        TEXT NOT NULL,   -- for people
	revision     BIGINT NOT NULL, -- random, another for each time it was enqueued
	since        BIGINT NOT NULL, -- when it was enqueued; 0 if nothing is pending, and it is only to be checked once more
	due_at       BIGINT,          -- when it is tried next; null if the platform refused it for good
	attempts     BIGINT NOT NULL, -- that failed
	reason       TEXT NOT NULL,   -- of the last failure
	holder       TEXT NOT NULL,   -- of the lease; one that is there still when the lease is over has ended in the middle
	leased_until BIGINT NOT NULL,
	PRIMARY KEY (site, kind, key)
);

CREATE INDEX work_due ON work (due_at);

-- Which process does the work of a serial kind at a site.
CREATE TABLE work_turns (
	site         TEXT NOT NULL,
	kind         TEXT NOT NULL,
	holder       TEXT NOT NULL,
	leased_until BIGINT NOT NULL,
	PRIMARY KEY (site, kind)
);

-- +goose Down
DROP TABLE work_turns;
DROP TABLE work;
