package config

import (
	"regexp"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// Store is where members and integrations are kept.
type Store struct {
	// Kind is `sqlite` or `postgres`.
	Kind string `json:"kind,omitempty"`

	// Source is SQLite's file, made if it is not there, or PostgreSQL's
	// connection string. Placeholders such as {env.LYCHGATE_DSN} are replaced.
	Source string `json:"source,omitempty"`
}

// readsFiles matches the parameters of a connection string that name files. Anyone who checks
// what is written may not be the user that may read them.
var readsFiles = regexp.MustCompile(`ssl|passfile|service`)

// Resolve fills in placeholders. A nil Store is SQLite in file.
func (s *Store) Resolve(p Placeholders, file string) (kind database.Kind, source string, err error) {
	if s == nil {
		return database.SQLite, file, nil
	}
	if s.Kind != string(database.SQLite) && s.Kind != string(database.Postgres) {
		return "", "", &Mistake{
			Option: "store", Field: "store.kind",
			Text: quote(s.Kind) + " is not a kind of store: write ‹sqlite› or ‹postgres›",
		}
	}
	wrong := func(text string) error {
		return &Mistake{Option: "store " + s.Kind, Field: "store.source", Text: text}
	}
	if strings.TrimSpace(s.Source) == "" {
		return "", "", wrong("write the file, such as ‹/var/lib/lychgate/lychgate.db›, or the connection string, such as ‹postgres://user@127.0.0.1/lychgate›")
	}
	err = p.Use("store", s.Source, func(value string) error {
		source = value
		if p.written && readsFiles.MatchString(value) {
			return nil
		}
		if err := database.Check(database.Kind(s.Kind), value); err != nil {
			return wrong(literal(err.Error()))
		}
		return nil
	})
	return database.Kind(s.Kind), source, inField("store.source", err)
}

// SetArgs takes the arguments that the option has in a Caddyfile.
func (s *Store) SetArgs(args []string) error {
	switch {
	case len(args) == 2:
		s.Kind, s.Source = args[0], args[1]
		return nil
	case args[0] == string(database.Postgres) && len(args) > 2:
		return &Mistake{Option: "store", Text: "a connection string with spaces needs quotes: write store postgres " + quote(strings.Join(args[1:], " "))}
	}
	if len(args) == 1 && args[0] == string(database.Postgres) {
		return &Mistake{Option: "store", Text: "write a connection string, as in: store postgres postgres://lychgate@db.internal/lychgate"}
	}
	return &Mistake{Option: "store", Text: "write the kind and one argument, as in: store sqlite /var/lib/lychgate/lychgate.db"}
}
