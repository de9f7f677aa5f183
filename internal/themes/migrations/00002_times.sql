-- +goose Up

-- When the known-good copy was stored, and since when it has Homepage Curation without a
-- break; 0 if that is not known.
ALTER TABLE themes ADD COLUMN known_good_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE themes ADD COLUMN curation_at BIGINT NOT NULL DEFAULT 0;

-- Without findings, the known-good copy is the latest.
UPDATE themes SET known_good_at = updated_at WHERE known_good IS NOT NULL AND findings = '[]';
UPDATE themes SET curation_at = known_good_at WHERE known_good LIKE '%"homepage_curation":{%';

-- +goose Down
ALTER TABLE themes DROP COLUMN curation_at;
ALTER TABLE themes DROP COLUMN known_good_at;
