-- +goose Up

-- Those that an edge has to begin or go on with.
CREATE INDEX comparisons_waiting ON comparisons (site) WHERE requested > served OR finished_at < started_at;

-- +goose Down
DROP INDEX comparisons_waiting;
