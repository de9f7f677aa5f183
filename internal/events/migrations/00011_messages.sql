-- +goose Up

-- Messages of staff to all who are registered for an event (docs/mail.md#messages). Times are Unix milliseconds, UTC.
CREATE TABLE mail_messages (
	site       TEXT NOT NULL,
	event      TEXT NOT NULL,
	id         TEXT NOT NULL,   -- of letters and digits
	subject    TEXT NOT NULL,
	text       TEXT NOT NULL,
	sent_by    TEXT NOT NULL,   -- the staff's name
	sent_at    BIGINT NOT NULL, -- who registers later does not get it
	recipients BIGINT NOT NULL,
	planned_at BIGINT,          -- when there was work for each of them; null before
	PRIMARY KEY (site, event, id)
);

-- +goose Down
DROP TABLE mail_messages;
