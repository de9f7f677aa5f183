-- +goose Up

ALTER TABLE integrations ADD COLUMN limit_requests BIGINT NOT NULL DEFAULT 0; -- 0 for the limit that all keys have
ALTER TABLE integrations ADD COLUMN limit_window BIGINT NOT NULL DEFAULT 0;   -- nanoseconds

-- +goose Down
ALTER TABLE integrations DROP COLUMN limit_requests;
ALTER TABLE integrations DROP COLUMN limit_window;
