-- +goose Up

-- Which write last named each field that the platform keeps too. It does not have
-- those of a later version than applied.
ALTER TABLE members ADD COLUMN named_email BIGINT NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN named_name BIGINT NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN named_note BIGINT NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN named_labels BIGINT NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN named_subscription BIGINT NOT NULL DEFAULT 0;

-- Of a member who is behind it was not noted: each field may have been named.
UPDATE members SET named_email = version, named_name = version, named_note = version, named_labels = version,
	named_subscription = version
	WHERE applied < version;

-- +goose Down
ALTER TABLE members DROP COLUMN named_email;
ALTER TABLE members DROP COLUMN named_name;
ALTER TABLE members DROP COLUMN named_note;
ALTER TABLE members DROP COLUMN named_labels;
ALTER TABLE members DROP COLUMN named_subscription;
