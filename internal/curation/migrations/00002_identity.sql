-- +goose Up

-- Two names of one tag, such as #x and hash-x, have one row. Of those that have two
-- already, the later choice stays.
CREATE TABLE curation_moves_by_identity (
	site      TEXT NOT NULL,
	identity  TEXT NOT NULL,   -- of the tag, the same for all its names
	tag       TEXT NOT NULL,   -- as the manifest writes it
	post      TEXT NOT NULL,   -- the only post that is to carry the tag, empty for none
	revision  BIGINT NOT NULL, -- random, another for each choice
	wanted_at BIGINT NOT NULL,
	due_at    BIGINT NOT NULL, -- when it is tried next
	tries     BIGINT NOT NULL DEFAULT 0,
	problem   TEXT NOT NULL DEFAULT '', -- of the last try
	PRIMARY KEY (site, identity)
);

INSERT INTO curation_moves_by_identity (site, identity, tag, post, revision, wanted_at, due_at, tries, problem)
	SELECT site, CASE WHEN trim(tag) LIKE '#%' THEN 'hash-' || lower(substr(trim(tag), 2)) ELSE lower(trim(tag)) END,
		tag, post, revision, wanted_at, due_at, tries, problem
	FROM curation_moves WHERE TRUE ORDER BY wanted_at DESC
	ON CONFLICT DO NOTHING;

DROP TABLE curation_moves;
ALTER TABLE curation_moves_by_identity RENAME TO curation_moves;
CREATE INDEX curation_moves_due ON curation_moves (due_at);

-- +goose Down
ALTER TABLE curation_moves RENAME TO curation_moves_by_identity;
DROP INDEX curation_moves_due;

CREATE TABLE curation_moves (
	site      TEXT NOT NULL,
	tag       TEXT NOT NULL,
	post      TEXT NOT NULL,
	revision  BIGINT NOT NULL,
	wanted_at BIGINT NOT NULL,
	due_at    BIGINT NOT NULL,
	tries     BIGINT NOT NULL DEFAULT 0,
	problem   TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (site, tag)
);

INSERT INTO curation_moves (site, tag, post, revision, wanted_at, due_at, tries, problem)
	SELECT site, tag, post, revision, wanted_at, due_at, tries, problem FROM curation_moves_by_identity;
DROP TABLE curation_moves_by_identity;
CREATE INDEX curation_moves_due ON curation_moves (due_at);
