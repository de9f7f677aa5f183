-- +goose Up

-- What pending writes depend on, as a JSON object (members.Condition); or empty. It does not count once these are applied,
-- so one that the last release leaves in place does no harm.
ALTER TABLE members ADD COLUMN condition TEXT NOT NULL DEFAULT '';
-- The last version that the platform is known to have got. It may be more than what is applied.
ALTER TABLE members ADD COLUMN confirmed BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE members DROP COLUMN confirmed;
ALTER TABLE members DROP COLUMN condition;
