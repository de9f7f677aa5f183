-- +goose Up

-- Times are Unix milliseconds, UTC.
CREATE TABLE members (
	guid          TEXT PRIMARY KEY,
	site          TEXT NOT NULL,
	email         TEXT NOT NULL,
	email_key     TEXT NOT NULL, -- the email as it is compared
	name          TEXT NOT NULL,
	note          TEXT NOT NULL,
	subscribed    BOOLEAN NOT NULL,
	labels        TEXT NOT NULL, -- a JSON array
	newsletters   TEXT NOT NULL, -- a JSON array, or null
	tier_id       TEXT,
	status        TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	updated_at    BIGINT NOT NULL,

	version       BIGINT NOT NULL,
	applied       BIGINT NOT NULL, -- the version that the platform has
	platform_id   TEXT,
	deleted       BOOLEAN NOT NULL, -- a tombstone: the platform may still have it
	sent_email    TEXT NOT NULL,   -- sent to the platform to be made there, outcome unknown; or empty
	sent_key      TEXT NOT NULL,   -- that email as it is compared
	sent_at       BIGINT NOT NULL,
	unanswered_at BIGINT NOT NULL, -- when an attempt to apply it had no answer; or 0

	attempts      BIGINT NOT NULL, -- to apply what is behind
	next_attempt  BIGINT NOT NULL,
	problem       TEXT NOT NULL,   -- of the last attempt
	lease_owner   TEXT NOT NULL,   -- who applies it now
	lease_until   BIGINT NOT NULL
);
CREATE UNIQUE INDEX members_email ON members (site, email_key) WHERE NOT deleted;
CREATE UNIQUE INDEX members_platform_id ON members (site, platform_id) WHERE platform_id IS NOT NULL;
CREATE INDEX members_leaving ON members (site, email_key) WHERE deleted;
CREATE INDEX members_sent ON members (site, sent_key) WHERE sent_key <> '';
CREATE INDEX members_gone ON members (site, next_attempt) WHERE deleted AND applied >= version;
CREATE INDEX members_behind ON members (site, next_attempt) WHERE applied < version;

CREATE TABLE member_ids (
	site        TEXT NOT NULL,
	integration TEXT NOT NULL,
	member_id   TEXT NOT NULL,
	guid        TEXT NOT NULL REFERENCES members (guid) ON DELETE CASCADE,
	PRIMARY KEY (site, integration, member_id)
);
CREATE UNIQUE INDEX member_ids_guid ON member_ids (guid, integration);

CREATE TABLE integrations (
	site                 TEXT NOT NULL,
	name                 TEXT NOT NULL,
	mode                 TEXT NOT NULL,
	duplicate_emails     BOOLEAN NOT NULL,
	placeholder_domain   TEXT NOT NULL,
	subscribe_by_default BOOLEAN NOT NULL,
	key_hash             TEXT NOT NULL UNIQUE, -- SHA-256, hexadecimal
	created_at           BIGINT NOT NULL,
	revoked_at           BIGINT, -- null while the key is good
	PRIMARY KEY (site, name)
);

CREATE TABLE idempotency (
	site         TEXT NOT NULL,
	integration  TEXT NOT NULL,
	key          TEXT NOT NULL,
	request_hash TEXT NOT NULL,
	guid         TEXT NOT NULL,   -- of the member that it makes, if it makes one
	status       BIGINT NOT NULL, -- 0 while the request is under way
	header       TEXT NOT NULL,   -- a JSON object
	body         TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	PRIMARY KEY (site, integration, key)
);
CREATE INDEX idempotency_created_at ON idempotency (created_at);

CREATE TABLE webhooks (
	site          TEXT PRIMARY KEY,
	url           TEXT NOT NULL,
	previous_url  TEXT NOT NULL,   -- that which the one before had, until this one is registered
	platform      TEXT NOT NULL,   -- where it is registered
	claimed_at    BIGINT NOT NULL, -- by the edge that registers it
	registered_at BIGINT NOT NULL, -- 0 until it is
	seen_at       BIGINT NOT NULL  -- up to when all changes on the platform were seen
);

CREATE TABLE imports (
	site       TEXT PRIMARY KEY,
	last_id    TEXT NOT NULL,   -- the last member that was brought in, as the platform calls it
	done       BIGINT NOT NULL, -- how many were brought in so far
	started_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE imports;
DROP TABLE webhooks;
DROP TABLE idempotency;
DROP TABLE integrations;
DROP TABLE member_ids;
DROP TABLE members;
