-- +goose Up

-- Those that operators have to see to.
CREATE INDEX webhooks_unregistered ON webhooks (site) WHERE registered_at = 0;

-- +goose Down
DROP INDEX webhooks_unregistered;
