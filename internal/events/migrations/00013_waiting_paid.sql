-- +goose Up

ALTER TABLE registrations_waiting ADD COLUMN is_paid BOOLEAN NOT NULL DEFAULT FALSE; -- whether they were a paying member when they last joined

-- +goose Down
ALTER TABLE registrations_waiting DROP COLUMN is_paid;
