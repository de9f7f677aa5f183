-- +goose Up

-- When and why the theme could not be read from its repository, since it last could. 0 for
-- one that could.
ALTER TABLE themes ADD COLUMN unread_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE themes ADD COLUMN unread TEXT NOT NULL DEFAULT '';

-- Themes that need an operator.
CREATE INDEX themes_with_findings ON themes (site, name) WHERE finding_count > 0;
CREATE INDEX themes_unread ON themes (site, name) WHERE unread_at > 0;

-- +goose Down
DROP INDEX themes_unread;
DROP INDEX themes_with_findings;
ALTER TABLE themes DROP COLUMN unread;
ALTER TABLE themes DROP COLUMN unread_at;
