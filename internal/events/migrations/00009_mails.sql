-- +goose Up

-- Mails that registrants were sent, or that the mail server refused, once for each reason (docs/mail.md#once).
CREATE TABLE mails (
	site    TEXT NOT NULL,
	event   TEXT NOT NULL,
	member  TEXT NOT NULL,
	reason  TEXT NOT NULL,   -- the kind of mail, and what it is about
	sent_at BIGINT NOT NULL, -- Unix milliseconds, UTC
	told    TEXT NOT NULL,   -- JSON of when and where the event is, as the mail said; '' if it said nothing of it
	refusal TEXT NOT NULL,   -- what the server said; '' if it took the mail
	PRIMARY KEY (site, event, member, reason)
);

CREATE INDEX mails_sent ON mails (site, sent_at);
CREATE INDEX mails_member ON mails (site, member, sent_at);

ALTER TABLE registrations ADD COLUMN language TEXT NOT NULL DEFAULT ''; -- of the page where they registered
ALTER TABLE registrations ADD COLUMN quiet_at BIGINT;                   -- when they wanted no more mails about the event that they can do without

-- +goose Down
ALTER TABLE registrations DROP COLUMN quiet_at;
ALTER TABLE registrations DROP COLUMN language;
DROP TABLE mails;
