-- +goose Up

-- Who of the staff did what. Times are Unix milliseconds, UTC.
CREATE TABLE history (
	site    TEXT NOT NULL,
	kind    TEXT NOT NULL,   -- of the thing: event, slot, integration
	thing   TEXT NOT NULL,   -- its key
	at      BIGINT NOT NULL,
	id      BIGINT NOT NULL, -- random
	editor  TEXT NOT NULL,   -- the platform's ID, empty for what was done on the platform
	name    TEXT NOT NULL,   -- of the editor
	did     TEXT NOT NULL,
	about   TEXT NOT NULL,   -- what else it was about, such as the title of a post
	PRIMARY KEY (site, kind, thing, at, id)
);

CREATE INDEX history_age ON history (at);

-- +goose Down
DROP TABLE history;
