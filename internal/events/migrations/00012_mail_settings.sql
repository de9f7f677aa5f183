-- +goose Up

ALTER TABLE events_sites ADD COLUMN mails TEXT NOT NULL DEFAULT '{}'; -- JSON of which reminders registrants get, and of the texts of mails

-- +goose Down
ALTER TABLE events_sites DROP COLUMN mails;
