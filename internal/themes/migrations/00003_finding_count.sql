-- +goose Up

ALTER TABLE themes ADD COLUMN finding_count BIGINT; -- of findings; null until the next upload or refresh

-- +goose Down
ALTER TABLE themes DROP COLUMN finding_count;
