-- +goose Up

-- What is to be synced to the platform is work like any other.
INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until)
	SELECT site, 'events', id, name, revision, wanted_at, due_at, tries, problem, holder, leased_until
	FROM events WHERE due_at IS NOT NULL;

-- The table is written once. SQLite writes it anew for each column that is dropped.
CREATE TABLE events_next (
	site       TEXT NOT NULL,
	id         TEXT NOT NULL,
	theme      TEXT NOT NULL,
	type       TEXT NOT NULL,
	content    TEXT NOT NULL, -- JSON of the values by their fields
	status     TEXT NOT NULL,
	revision   BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	shape      TEXT NOT NULL, -- JSON of what the manifest said when it was saved
	post_id    TEXT NOT NULL, -- empty for none
	post       TEXT NOT NULL, -- JSON of what the platform last had
	late_at    BIGINT NOT NULL, -- when it is looked for a second post that may have been made, 0 for never
	name       TEXT NOT NULL, -- in lower case, for searches
	starts_at  BIGINT NOT NULL, -- far in the future without a date
	over_at    BIGINT NOT NULL,
	slug       TEXT,          -- of its page, null if readers do not find it
	public     TEXT NOT NULL, -- JSON of what readers get
	PRIMARY KEY (site, id)
);
INSERT INTO events_next SELECT site, id, theme, type, content, status, revision, created_at, updated_at, shape, post_id, post,
	late_at, name, starts_at, over_at, slug, public FROM events;
DROP TABLE events;
ALTER TABLE events_next RENAME TO events;
CREATE INDEX events_post ON events (site, post_id);
CREATE INDEX events_slug ON events (site, slug);
CREATE INDEX events_time ON events (site, starts_at, id);
CREATE INDEX events_public ON events (site, starts_at, id, over_at, type) WHERE slug IS NOT NULL;
CREATE INDEX events_made ON events (site, status, created_at);

-- +goose Down
ALTER TABLE events ADD COLUMN due_at BIGINT;
ALTER TABLE events ADD COLUMN wanted_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN tries BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN problem TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN holder TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN leased_until BIGINT NOT NULL DEFAULT 0;
CREATE INDEX events_due ON events (due_at);

UPDATE events SET (due_at, wanted_at, tries, problem, holder, leased_until) =
	(SELECT due_at, since, attempts, reason, holder, leased_until FROM work WHERE work.site = events.site AND kind = 'events' AND key = events.id)
	WHERE EXISTS (SELECT 1 FROM work WHERE work.site = events.site AND kind = 'events' AND key = events.id);
DELETE FROM work WHERE kind = 'events';
