-- +goose Up

-- What is to be brought to the platform is work like any other.
INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until)
	SELECT site, 'events', id, name, revision, wanted_at, due_at, tries, problem, holder, leased_until
	FROM events WHERE due_at IS NOT NULL;

DROP INDEX events_due;
ALTER TABLE events DROP COLUMN due_at;
ALTER TABLE events DROP COLUMN wanted_at;
ALTER TABLE events DROP COLUMN tries;
ALTER TABLE events DROP COLUMN problem;
ALTER TABLE events DROP COLUMN holder;
ALTER TABLE events DROP COLUMN leased_until;

-- +goose Down
ALTER TABLE events ADD COLUMN due_at BIGINT;
ALTER TABLE events ADD COLUMN wanted_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN tries BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN problem TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN holder TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN leased_until BIGINT NOT NULL DEFAULT 0;
CREATE INDEX events_due ON events (due_at);

UPDATE events SET (due_at, wanted_at, tries, problem, holder, leased_until) =
	(SELECT due_at, since, attempts, reason, holder, leased_until FROM work WHERE work.site = events.site AND kind = 'events' AND key = events.id)
	WHERE EXISTS (SELECT 1 FROM work WHERE work.site = events.site AND kind = 'events' AND key = events.id);
DELETE FROM work WHERE kind = 'events';
