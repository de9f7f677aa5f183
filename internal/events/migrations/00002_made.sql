-- +goose Up

-- Counts of a site's drafts and of those made a moment ago read no values.
CREATE INDEX events_made ON events (site, status, created_at);

-- +goose Down
DROP INDEX events_made;
