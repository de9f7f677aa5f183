-- +goose Up

-- The lists of the staff, and what they count, read this alone until they know which events they show.
CREATE INDEX events_list ON events (site, starts_at, id, over_at, status, type);

-- +goose Down
DROP INDEX events_list;
