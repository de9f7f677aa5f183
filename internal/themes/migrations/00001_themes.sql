-- +goose Up

-- Times are Unix milliseconds, UTC. Manifests and findings are JSON.
CREATE TABLE themes (
	site       TEXT NOT NULL,
	name       TEXT NOT NULL,
	manifest   TEXT,                      -- the latest that was stored, null if none was
	known_good TEXT,                      -- the last without findings, null while curation is inactive
	findings   TEXT,                      -- of the last upload or refresh, null if the theme has no manifest
	updated_at BIGINT NOT NULL DEFAULT 0, -- when that was
	begun      BIGINT NOT NULL,           -- changes begun so far
	changed    BIGINT NOT NULL DEFAULT 0, -- which of them was the last to be made
	PRIMARY KEY (site, name)
);

-- +goose Down
DROP TABLE themes;
