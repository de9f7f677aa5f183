-- +goose Up

-- The address that a member gets which is created while its email belongs to another on the platform; or empty.
-- One that the last release has queued has none.
ALTER TABLE members ADD COLUMN placeholder TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE members DROP COLUMN placeholder;
