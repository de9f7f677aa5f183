-- +goose Up

-- What is to be brought to the platform is work like any other. The lease of a site is its
-- turn there.
INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until)
	SELECT site, 'curation', identity, tag, revision, wanted_at, due_at, tries, problem, '', 0 FROM curation_moves;

DROP TABLE curation_leases;
DROP INDEX curation_moves_due;
ALTER TABLE curation_moves DROP COLUMN wanted_at;
ALTER TABLE curation_moves DROP COLUMN due_at;
ALTER TABLE curation_moves DROP COLUMN tries;
ALTER TABLE curation_moves DROP COLUMN problem;

-- +goose Down
ALTER TABLE curation_moves ADD COLUMN wanted_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE curation_moves ADD COLUMN due_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE curation_moves ADD COLUMN tries BIGINT NOT NULL DEFAULT 0;
ALTER TABLE curation_moves ADD COLUMN problem TEXT NOT NULL DEFAULT '';
CREATE INDEX curation_moves_due ON curation_moves (due_at);

UPDATE curation_moves SET (wanted_at, due_at, tries, problem) =
	(SELECT since, due_at, attempts, reason FROM work WHERE work.site = curation_moves.site AND kind = 'curation' AND key = identity)
	WHERE EXISTS (SELECT 1 FROM work WHERE work.site = curation_moves.site AND kind = 'curation' AND key = identity);
DELETE FROM work WHERE kind = 'curation';

CREATE TABLE curation_leases (
	site         TEXT PRIMARY KEY,
	holder       TEXT NOT NULL,
	leased_until BIGINT NOT NULL
);
