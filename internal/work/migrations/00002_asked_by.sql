-- +goose Up

-- The name of the member of the staff who asked for it, for people; '' for none.
ALTER TABLE work ADD COLUMN asked_by TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE work DROP COLUMN asked_by;
