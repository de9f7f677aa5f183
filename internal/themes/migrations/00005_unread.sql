-- +goose Up

-- Which change was the last to be made when the theme could not be read. Versions that do not know of
-- unread_at leave it when they save or clear a theme, and raise changed.
ALTER TABLE themes ADD COLUMN unread_after BIGINT NOT NULL DEFAULT 0;
UPDATE themes SET unread_after = changed WHERE unread_at > 0 AND unread_at >= updated_at;

-- +goose Down
ALTER TABLE themes DROP COLUMN unread_after;
