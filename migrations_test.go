package lychgate_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/contacts"
	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// The schemas, by their folders.
var schemas = map[string]database.Schema{
	"audit": audit.Schema, "contacts": contacts.Schema, "curation": curation.Schema, "events": events.Schema, "history": history.Schema, "memberstore": memberstore.Schema,
	"sites": sites.Schema, "themes": themes.Schema, "work": work.Schema,
}

// besideLastRelease says what shows that this version copes with rows that the last release writes after a
// migration.
var besideLastRelease = map[string]string{
	"contacts/migrations/00001_contacts.sql":        "a table that the last release does not have",
	"audit/migrations/00001_audit.sql":              "a table that the last release does not have",
	"events/migrations/00009_mails.sql":             "TestUpgradeOfRegistrations in internal/registration, whose rows have the defaults of the columns",
	"events/migrations/00010_waiting.sql":           "a table that the last release does not have",
	"events/migrations/00011_messages.sql":          "a table that the last release does not have",
	"events/migrations/00012_mail_settings.sql":     "the default of the column, which the last release neither reads nor writes",
	"events/migrations/00013_waiting_paid.sql":      "a column of a table that the last release does not have",
	"memberstore/migrations/00009_unregistered.sql": "an index",
	"memberstore/migrations/00010_placeholder.sql":  "TestCreatedWhileAway in members/outbox, whose creates have no placeholder",
	"memberstore/migrations/00011_conditions.sql":   "TestConditionOfAnAppliedWrite in members/outbox",
	"memberstore/migrations/00012_adopt.sql":        "the default of the column: the last release has no such option",
	"memberstore/migrations/00013_rotated.sql":      "nothing: the last release keeps no time when it rotates",
	"sites/migrations/00002_labels.sql":             "exchangeSite of TestSideBySide in e2e/versions",
	"themes/migrations/00004_failing.sql":           "exchangeTheme of TestSideBySide in e2e/versions",
	"themes/migrations/00005_unread.sql":            "exchangeTheme of TestSideBySide in e2e/versions",
	"work/migrations/00003_pending.sql":             "an index",
}

// While edges are upgraded one by one, those of the last release go on with the store that the
// first new one has migrated (docs/deployment.md#two-versions-on-one-store).
func TestMigrationsOnlyAdd(t *testing.T) {
	var folders []string
	for _, pattern := range []string{"*/migrations", "internal/*/migrations", "internal/lib/*/migrations"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatalf("filepath.Glob: %v", err)
		}
		folders = append(folders, found...)
	}
	if len(folders) != len(schemas) || len(folders) != len(edge.Schemas()) {
		t.Fatalf("got folders of migrations %v, want those of the %d schemas", folders, len(schemas))
	}
	released := lastRelease(t)
	for folder, schema := range schemas {
		files, err := fs.Glob(schema.Files, "migrations/*.sql")
		if err != nil {
			t.Fatalf("fs.Glob: %v", err)
		}
		checked := schemaCheck{name: schema.Name}
		for _, file := range files {
			digits, _, _ := strings.Cut(path.Base(file), "_")
			version, err := strconv.ParseInt(digits, 10, 64)
			if err != nil {
				t.Fatalf("strconv.ParseInt: %v", err)
			}
			if version <= released[folder] {
				continue
			}
			if besideLastRelease[folder+"/"+file] == "" {
				t.Errorf("%s/%s: no entry in besideLastRelease, want which test writes such rows as the last release does", folder, file)
			}
			text, err := fs.ReadFile(schema.Files, file)
			if err != nil {
				t.Fatalf("fs.ReadFile: %v", err)
			}
			for _, problem := range checked.migration(version, string(text)) {
				t.Errorf("%s/%s: %s", folder, file, problem)
			}
		}
	}
}

// lastRelease reads the version of each folder's tables in the last release.
func lastRelease(t *testing.T) map[string]int64 {
	t.Helper()
	text, err := os.ReadFile("e2e/versions/last_release")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	versions := make(map[string]int64)
	for line := range strings.Lines(string(text)) {
		folder, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, isSchema := schemas[folder]; isSchema {
			if versions[folder], err = strconv.ParseInt(value, 10, 64); err != nil {
				t.Fatalf("strconv.ParseInt: %v", err)
			}
		}
	}
	return versions
}

// schemaCheck checks the migrations of a schema since the last release, in their order.
type schemaCheck struct {
	name string   // of the schema
	made []string // tables, and columns as table.column
}

var (
	commentOrText = regexp.MustCompile(`'(?:[^']|'')*'|--[^\n]*`)
	spaces        = regexp.MustCompile(`\s+`)

	createTable = regexp.MustCompile(`(?i)^CREATE TABLE (?:IF NOT EXISTS )?(\w+) ?\(`)
	references  = regexp.MustCompile(`(?i)\bREFERENCES (\w+)(?: ?\([^)]*\))?(?: ON DELETE (?:CASCADE|SET NULL))?`)
	createIndex = regexp.MustCompile(`(?i)^CREATE (UNIQUE )?INDEX (?:IF NOT EXISTS )?\w+ ON (\w+) ?\(`)
	addColumn   = regexp.MustCompile(`(?i)^ALTER TABLE (\w+) ADD (?:COLUMN )?(\w+) (.+)$`)
	insert      = regexp.MustCompile(`(?i)^INSERT INTO (\w+)\b`)
	update      = regexp.MustCompile(`(?i)^UPDATE (\w+) SET (.+)$`)
	assigned    = regexp.MustCompile(`(?i)(\w+) = `)
	constraint  = regexp.MustCompile(`(?i)\b(UNIQUE|CHECK|PRIMARY|REFERENCES|GENERATED)\b`)
	notNull     = regexp.MustCompile(`(?i)\bNOT NULL\b`)
	hasDefault  = regexp.MustCompile(`(?i)\bDEFAULT\b`)
	condition   = regexp.MustCompile(`(?i) WHERE .*$`)
	raise       = regexp.MustCompile(`^UPDATE migrations_compatible SET version = (\d+) WHERE name = '(\w+)'$`)
)

// migration lists what a release that does not know the migration could not go on with. It is
// empty if the migration says itself which version may still use the tables.
func (c *schemaCheck) migration(version int64, text string) (problems []string) {
	text, _, _ = strings.Cut(text, "-- +goose Down")
	text = commentOrText.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "--") {
			return ""
		}
		return strings.ReplaceAll(found, ";", "") // which ends no statement there
	})
	isRaised := false
	for statement := range strings.SplitSeq(text, ";") {
		statement = strings.TrimSpace(spaces.ReplaceAllString(statement, " "))
		if statement == "" {
			continue
		}
		if found := raise.FindStringSubmatch(statement); found != nil {
			isRaised = true
			if to, err := strconv.ParseInt(found[1], 10, 64); err != nil || to < 1 || to > version || found[2] != c.name {
				return []string{fmt.Sprintf("%q: raise to at most %d, for '%s'", statement, version, c.name)}
			}
			continue
		}
		if problem := c.statement(statement); problem != "" {
			problems = append(problems, fmt.Sprintf("%q %s", statement, problem))
		}
	}
	if isRaised {
		return nil
	}
	return problems
}

// statement is why a statement is not only adding, or "".
func (c *schemaCheck) statement(statement string) string {
	if found := createTable.FindStringSubmatch(statement); found != nil {
		c.made = append(c.made, found[1])
		for _, reference := range references.FindAllStringSubmatch(statement, -1) {
			if !strings.Contains(strings.ToUpper(reference[0]), "ON DELETE") && !c.isMade(reference[1]) {
				return "keeps the last release from deleting rows of " + reference[1]
			}
		}
		return ""
	}
	if found := createIndex.FindStringSubmatch(statement); found != nil {
		if found[1] != "" && !c.isMade(found[2]) {
			return "refuses rows that the last release may write"
		}
		return ""
	}
	if found := addColumn.FindStringSubmatch(statement); found != nil {
		c.made = append(c.made, found[1]+"."+found[2])
		if c.isMade(found[1]) {
			return ""
		}
		if constraint.MatchString(found[3]) || notNull.MatchString(found[3]) && !hasDefault.MatchString(found[3]) {
			return "refuses rows that the last release writes"
		}
		return ""
	}
	if found := insert.FindStringSubmatch(statement); found != nil && c.isMade(found[1]) {
		return ""
	}
	if found := update.FindStringSubmatch(statement); found != nil {
		for _, column := range assigned.FindAllStringSubmatch(condition.ReplaceAllString(found[2], ""), -1) {
			if !c.isMade(found[1]) && !c.isMade(found[1]+"."+column[1]) {
				return "changes what the last release uses"
			}
		}
		return ""
	}
	return "does more than add"
}

func (c *schemaCheck) isMade(name string) bool { return slices.Contains(c.made, name) }

// A migration with which an edge of the last release would fail or lose something is found,
// unless it raises the version that may still use the tables.
func TestMigrationCheck(t *testing.T) {
	for name, test := range map[string]struct {
		sql  string
		want []string
	}{
		"all that is allowed": {sql: `
			CREATE TABLE guests (id TEXT PRIMARY KEY, member TEXT NOT NULL REFERENCES members (guid) ON DELETE CASCADE); -- new; and empty
			CREATE UNIQUE INDEX guests_member ON guests (member);
			CREATE TABLE seats (guest TEXT NOT NULL REFERENCES guests (id));
			ALTER TABLE guests ADD COLUMN row TEXT NOT NULL;
			INSERT INTO guests (id, member) SELECT guid, guid FROM members WHERE name <> 'a;b--';
			ALTER TABLE members ADD COLUMN rank BIGINT;
			ALTER TABLE members ADD COLUMN is_first BOOLEAN NOT NULL DEFAULT FALSE;
			UPDATE members SET rank = 1, is_first = TRUE WHERE name = 'a';
			CREATE INDEX members_rank ON members (rank) WHERE rank IS NOT NULL;`},
		"a column is removed":   {"ALTER TABLE members DROP COLUMN name;", []string{`"ALTER TABLE members DROP COLUMN name" does more than add`}},
		"a table is renamed":    {"ALTER TABLE members RENAME TO people;", []string{`"ALTER TABLE members RENAME TO people" does more than add`}},
		"an index is removed":   {"drop index members_email;", []string{`"drop index members_email" does more than add`}},
		"rows are removed":      {"DELETE FROM members;", []string{`"DELETE FROM members" does more than add`}},
		"no default":            {"ALTER TABLE members ADD rank BIGINT NOT NULL;", []string{`"ALTER TABLE members ADD rank BIGINT NOT NULL" refuses rows that the last release writes`}},
		"a constraint":          {"ALTER TABLE members ADD COLUMN rank BIGINT UNIQUE;", []string{`"ALTER TABLE members ADD COLUMN rank BIGINT UNIQUE" refuses rows that the last release writes`}},
		"a unique index":        {"CREATE UNIQUE INDEX x ON members (name);", []string{`"CREATE UNIQUE INDEX x ON members (name)" refuses rows that the last release may write`}},
		"a reference":           {"CREATE TABLE x (guid TEXT REFERENCES members (guid));", []string{`"CREATE TABLE x (guid TEXT REFERENCES members (guid))" keeps the last release from deleting rows of members`}},
		"values change":         {"UPDATE members SET\n\tname = lower(name);", []string{`"UPDATE members SET name = lower(name)" changes what the last release uses`}},
		"rows are added":        {"INSERT INTO members (guid) VALUES ('1');", []string{`"INSERT INTO members (guid) VALUES ('1')" does more than add`}},
		"deliberately":          {sql: "DROP TABLE members; UPDATE migrations_compatible SET version = 8 WHERE name = 'members';"},
		"raised to the future":  {"UPDATE migrations_compatible SET version = 10 WHERE name = 'members';", []string{`"UPDATE migrations_compatible SET version = 10 WHERE name = 'members'": raise to at most 9, for 'members'`}},
		"raised for another":    {"UPDATE migrations_compatible SET version = 9 WHERE name = 'events';", []string{`"UPDATE migrations_compatible SET version = 9 WHERE name = 'events'": raise to at most 9, for 'members'`}},
		"raised for all":        {"UPDATE migrations_compatible SET version = 9;", []string{`"UPDATE migrations_compatible SET version = 9" changes what the last release uses`}},
		"what Down does is not": {sql: "CREATE TABLE x (id TEXT);\n-- +goose Down\nDROP TABLE x;"},
	} {
		got := (&schemaCheck{name: "members"}).migration(9, "-- +goose Up\n"+test.sql)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
