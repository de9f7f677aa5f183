-- +goose Up

-- How each site's platform responded to the edges. Times are Unix milliseconds, UTC, by the
-- clock of the store.
CREATE TABLE contacts (
	site         TEXT PRIMARY KEY,
	outcome      TEXT NOT NULL,   -- of the last request that is noted: responds, rejected or away
	since        BIGINT NOT NULL, -- when it began to be so
	problem      TEXT NOT NULL,   -- why, empty for responds
	responded_at BIGINT NOT NULL, -- when the platform took a request last; 0 if it is not known
	asked_at     BIGINT NOT NULL
);

-- Those in trouble, by name and by how long.
CREATE INDEX contacts_failing ON contacts (site) WHERE outcome <> 'responds';
CREATE INDEX contacts_since ON contacts (outcome, since) WHERE outcome <> 'responds';

-- +goose Down
DROP TABLE contacts;
