-- +goose Up

-- Who waits for a place at an event that is full, in the order of since and member (docs/registration.md#waiting-list). Times are Unix
-- milliseconds, UTC.
CREATE TABLE registrations_waiting (
	site          TEXT NOT NULL,
	event         TEXT NOT NULL,
	member        TEXT NOT NULL, -- the platform's UUID
	email         TEXT NOT NULL,
	name          TEXT NOT NULL,
	language      TEXT NOT NULL,
	since         BIGINT NOT NULL,
	offered_until BIGINT,        -- a place is kept for them until then, and counted as taken; null for none
	PRIMARY KEY (site, event, member)
);

CREATE INDEX registrations_waiting_order ON registrations_waiting (site, event, since, member);
CREATE INDEX registrations_waiting_member ON registrations_waiting (site, member);

-- +goose Down
DROP TABLE registrations_waiting;
