-- +goose Up

-- Times are Unix milliseconds, UTC.
ALTER TABLE registrations ADD COLUMN added_by TEXT NOT NULL DEFAULT '';       -- the staff's name, '' if the member registered
ALTER TABLE registrations ADD COLUMN cancelled_by TEXT NOT NULL DEFAULT '';   -- the staff's name, '' if the member cancelled
ALTER TABLE registrations ADD COLUMN checked_in_at BIGINT;                    -- null while they are not
ALTER TABLE registrations ADD COLUMN check_changed_at BIGINT NOT NULL DEFAULT 0; -- when somebody last checked them in, or undid it
ALTER TABLE registrations ADD COLUMN changed BIGINT NOT NULL DEFAULT 1;       -- the version of the list with the last change

-- Each change of a registration adds 1, and gives the sum to the registration.
ALTER TABLE registrations_taken ADD COLUMN version BIGINT NOT NULL DEFAULT 1;

CREATE INDEX registrations_order ON registrations (site, event, registered_at, member);
CREATE INDEX registrations_changed ON registrations (site, event, changed, member);

-- +goose Down
DROP INDEX registrations_changed;
DROP INDEX registrations_order;
ALTER TABLE registrations_taken DROP COLUMN version;
ALTER TABLE registrations DROP COLUMN changed;
ALTER TABLE registrations DROP COLUMN check_changed_at;
ALTER TABLE registrations DROP COLUMN checked_in_at;
ALTER TABLE registrations DROP COLUMN cancelled_by;
ALTER TABLE registrations DROP COLUMN added_by;
