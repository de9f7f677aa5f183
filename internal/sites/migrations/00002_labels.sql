-- +goose Up

-- The labels of a site, each with a space before and after it; empty for none.
ALTER TABLE sites ADD COLUMN labels TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sites DROP COLUMN labels;
