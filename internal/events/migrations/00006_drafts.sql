-- +goose Up

-- JSON of what staff have asked for of the post, beside the values.
ALTER TABLE events ADD COLUMN wanted TEXT NOT NULL DEFAULT '{}';

-- Those that are being unpublished.
UPDATE events SET wanted = '{"is_taken_back":true}' WHERE status = 'draft' AND post_id <> ''
	AND EXISTS (SELECT 1 FROM work WHERE work.site = events.site AND kind = 'events' AND key = events.id AND since > 0);

-- +goose Down
ALTER TABLE events DROP COLUMN wanted;
