-- +goose Up

-- When an integration's key was rotated last, null if it never was.
ALTER TABLE integrations ADD COLUMN rotated_at BIGINT;

-- +goose Down
ALTER TABLE integrations DROP COLUMN rotated_at;
