-- +goose Up

-- A publication has many rows that are only to be checked once more, and few that are pending.
CREATE INDEX work_pending ON work (site, since) WHERE since > 0 AND due_at IS NOT NULL;

-- +goose Down
DROP INDEX work_pending;
