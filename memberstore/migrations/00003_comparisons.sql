-- +goose Up

-- How far comparing all members of a site with its platform's is.
CREATE TABLE comparisons (
	site        TEXT PRIMARY KEY,
	last_id     TEXT NOT NULL,   -- the last member that was compared, as the platform calls it
	started_at  BIGINT NOT NULL, -- 0 before the first
	finished_at BIGINT NOT NULL, -- when the last one was; 0 before
	surplus     BIGINT NOT NULL, -- how many of the platform's members were not kept
	requested   BIGINT NOT NULL, -- counts the requests for one
	served      BIGINT NOT NULL, -- those that were made before this one started
	owner       TEXT NOT NULL,   -- who is at it
	owner_until BIGINT NOT NULL
);

-- +goose Down
DROP TABLE comparisons;
