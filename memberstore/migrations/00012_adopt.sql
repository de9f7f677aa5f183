-- +goose Up

-- Whether creates give their ID to members who have the email already. An integration of the last release's does not.
ALTER TABLE integrations ADD COLUMN adopt BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE integrations DROP COLUMN adopt;
