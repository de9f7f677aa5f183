-- +goose Up

-- Times are Unix milliseconds, UTC. A row is there until the platform has it so.
CREATE TABLE curation_moves (
	site      TEXT NOT NULL,
	tag       TEXT NOT NULL,
	post      TEXT NOT NULL,   -- the only post that is to carry the tag, empty for none
	revision  BIGINT NOT NULL, -- random, another for each choice
	wanted_at BIGINT NOT NULL,
	due_at    BIGINT NOT NULL, -- when it is tried next
	tries     BIGINT NOT NULL DEFAULT 0,
	problem   TEXT NOT NULL DEFAULT '', -- of the last try
	PRIMARY KEY (site, tag)
);

CREATE INDEX curation_moves_due ON curation_moves (due_at);

-- One process at a time moves the tags of a site.
CREATE TABLE curation_leases (
	site         TEXT PRIMARY KEY,
	holder       TEXT NOT NULL,
	leased_until BIGINT NOT NULL
);

-- +goose Down
DROP TABLE curation_leases;
DROP TABLE curation_moves;
