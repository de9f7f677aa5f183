-- +goose Up

ALTER TABLE integrations ADD COLUMN last_used_at BIGINT; -- null until its key is used

-- +goose Down
ALTER TABLE integrations DROP COLUMN last_used_at;
