-- +goose Up

-- Times are Unix milliseconds, UTC. Manifests and findings are JSON.
CREATE TABLE themes (
	site       TEXT NOT NULL,
	name       TEXT NOT NULL,
	manifest   TEXT,            -- the latest that was stored, null if none was
	known_good TEXT,            -- the last without findings, null while curation is inactive
	findings   TEXT NOT NULL,   -- of the last upload or refresh
	updated_at BIGINT NOT NULL, -- when that was
	PRIMARY KEY (site, name)
);

-- +goose Down
DROP TABLE themes;
