-- +goose Up

-- An event of whole days is on its own dates, wherever it is looked at: the first one, and the day behind the last,
-- in UTC. Those of other events are far in the future, as of an event without a date. NULL is of an event that an
-- earlier version has kept, and is filled in at the start.
ALTER TABLE events ADD COLUMN day_from BIGINT;
ALTER TABLE events ADD COLUMN day_until BIGINT;
DROP INDEX events_list;
CREATE INDEX events_list ON events (site, starts_at, id, over_at, status, type, day_from, day_until);
CREATE INDEX events_without_days ON events (site, id) WHERE day_from IS NULL;

-- +goose Down
DROP INDEX events_without_days;
DROP INDEX events_list;
CREATE INDEX events_list ON events (site, starts_at, id, over_at, status, type);
ALTER TABLE events DROP COLUMN day_until;
ALTER TABLE events DROP COLUMN day_from;
