-- +goose Up

-- Why the platform refused the last write for good, or empty. Without a platform_id that
-- was the member's create: there is no such member, and the row keeps the reason for a while.
ALTER TABLE members ADD COLUMN refused TEXT NOT NULL DEFAULT '';
ALTER TABLE members ADD COLUMN refused_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX members_refused ON members (site, refused_at) WHERE refused <> '';

-- +goose Down
-- What is no member would be one to an older version.
DELETE FROM members WHERE refused <> '' AND platform_id IS NULL AND applied >= version AND NOT deleted;
DROP INDEX members_refused;
ALTER TABLE members DROP COLUMN refused;
ALTER TABLE members DROP COLUMN refused_at;
