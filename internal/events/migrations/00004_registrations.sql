-- +goose Up

-- Times are Unix milliseconds, UTC.
CREATE TABLE registrations (
	site          TEXT NOT NULL,
	event         TEXT NOT NULL,
	member        TEXT NOT NULL, -- the platform's UUID
	email         TEXT NOT NULL, -- when they registered
	name          TEXT NOT NULL, -- when they registered
	search        TEXT NOT NULL, -- email and name in lower case
	registered_at BIGINT NOT NULL,
	cancelled_at  BIGINT,        -- null while they are registered
	PRIMARY KEY (site, event, member)
);

CREATE INDEX registrations_member ON registrations (site, member);

-- How many are registered for an event. A registration changes both tables in one transaction,
-- and this row is what readers at the same moment wait for.
CREATE TABLE registrations_taken (
	site  TEXT NOT NULL,
	event TEXT NOT NULL,
	taken BIGINT NOT NULL,
	PRIMARY KEY (site, event)
);

-- The labels that members have from here, and no others.
CREATE TABLE registration_labels (
	site   TEXT NOT NULL,
	member TEXT NOT NULL,
	label  TEXT NOT NULL,
	sent   BOOLEAN NOT NULL, -- whether the platform has it
	PRIMARY KEY (site, member, label)
);

-- +goose Down
DROP TABLE registration_labels;
DROP TABLE registrations_taken;
DROP TABLE registrations;
