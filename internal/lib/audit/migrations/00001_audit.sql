-- +goose Up

-- Changes that commands made, until an edge has logged them. Times are Unix milliseconds, UTC.
CREATE TABLE audit_changes (
	at     BIGINT NOT NULL,
	id     BIGINT NOT NULL, -- random
	change TEXT NOT NULL,   -- a JSON object
	PRIMARY KEY (at, id)
);

-- +goose Down
DROP TABLE audit_changes;
