-- +goose Up

-- Times are Unix milliseconds, UTC.
CREATE TABLE events (
	site         TEXT NOT NULL,
	id           TEXT NOT NULL,
	theme        TEXT NOT NULL,
	type         TEXT NOT NULL,
	content      TEXT NOT NULL, -- JSON of the values by their fields
	status       TEXT NOT NULL,
	revision     BIGINT NOT NULL,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL,
	shape        TEXT NOT NULL, -- JSON of what the manifest said when it was saved
	post_id      TEXT NOT NULL, -- empty for none
	post         TEXT NOT NULL, -- JSON of what the platform last had
	due_at       BIGINT,        -- when it is brought to the platform next, null if the platform has it
	wanted_at    BIGINT NOT NULL,
	tries        BIGINT NOT NULL,
	problem      TEXT NOT NULL, -- of the last try
	holder       TEXT NOT NULL, -- the process that brings it
	leased_until BIGINT NOT NULL,
	late_at      BIGINT NOT NULL, -- when it is looked for a second post that may have been made, 0 for never
	name         TEXT NOT NULL, -- in lower case, for searches
	starts_at    BIGINT NOT NULL, -- far in the future without a date
	over_at      BIGINT NOT NULL,
	slug         TEXT,          -- of its page, null if readers do not find it
	public       TEXT NOT NULL, -- JSON of what readers get
	PRIMARY KEY (site, id)
);

CREATE INDEX events_due ON events (due_at);
CREATE INDEX events_post ON events (site, post_id);
CREATE INDEX events_slug ON events (site, slug);
CREATE INDEX events_time ON events (site, starts_at, id);
CREATE INDEX events_public ON events (site, starts_at, id, over_at, type) WHERE slug IS NOT NULL;

CREATE TABLE events_sites (
	site          TEXT PRIMARY KEY,
	version       BIGINT NOT NULL, -- that changes with what readers get
	looked_at     BIGINT NOT NULL, -- when it was last asked what staff changed on the platform
	image_size    TEXT NOT NULL,
	calendar_name TEXT NOT NULL,
	messages      TEXT NOT NULL    -- JSON of texts by messaging states
);

-- Who has an event open in the editor. A row is there for a moment.
CREATE TABLE events_editors (
	site    TEXT NOT NULL,
	event   TEXT NOT NULL,
	editor  TEXT NOT NULL, -- the platform's ID
	name    TEXT NOT NULL, -- for people
	seen_at BIGINT NOT NULL,
	PRIMARY KEY (site, event, editor)
);

-- +goose Down
DROP TABLE events_editors;
DROP TABLE events_sites;
DROP TABLE events;
