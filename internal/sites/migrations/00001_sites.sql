-- +goose Up

-- Times are Unix milliseconds, UTC.
CREATE TABLE sites (
	name       TEXT PRIMARY KEY,
	hosts      TEXT NOT NULL,    -- a JSON array
	settings   TEXT NOT NULL,    -- a JSON object
	secrets    TEXT NOT NULL,    -- a JSON object, sealed; or empty
	revision   BIGINT NOT NULL,  -- of its last change
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	removed_at BIGINT NOT NULL,  -- 0 while it is not
	is_purged  BOOLEAN NOT NULL, -- what was kept of the removed site is gone
	purge_until BIGINT NOT NULL  -- until when one process deletes that, and no other
);
CREATE UNIQUE INDEX sites_changed ON sites (revision);
CREATE INDEX sites_removed ON sites (removed_at) WHERE removed_at > 0 AND NOT is_purged;

CREATE TABLE site_hosts (
	host TEXT PRIMARY KEY,
	site TEXT NOT NULL REFERENCES sites (name) ON DELETE CASCADE
);
CREATE INDEX site_hosts_site ON site_hosts (site);

-- The one row is changed first by every change, so that changes wait for each other
-- and are seen in the order of their revisions.
CREATE TABLE site_revisions (revision BIGINT NOT NULL);
INSERT INTO site_revisions (revision) VALUES (0);

-- +goose Down
DROP TABLE site_revisions;
DROP TABLE site_hosts;
DROP TABLE sites;
