-- +goose Up

-- Those that need an operator.
CREATE INDEX webhooks_unregistered ON webhooks (site) WHERE registered_at = 0;

-- +goose Down
DROP INDEX webhooks_unregistered;
