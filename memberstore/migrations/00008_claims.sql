-- +goose Up

-- Who answers a request that is under way, and until when that counts. The status is 0 while
-- the request has changed nothing, 2 once its change is stored, and 1 once it is answered.
ALTER TABLE idempotency ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE idempotency ADD COLUMN owner_until BIGINT NOT NULL DEFAULT 0;

-- +goose Down
UPDATE idempotency SET status = 0 WHERE status = 2; -- an older version takes it for answered
ALTER TABLE idempotency DROP COLUMN owner;
ALTER TABLE idempotency DROP COLUMN owner_until;
