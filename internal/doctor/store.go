package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/lychgate/caddy-lychgate/internal/contacts"
	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

const (
	// lowSpace is how many bytes should be free where SQLite's file is, and minSpace
	// with how many writes are about to fail.
	lowSpace = 1 << 30
	minSpace = 64 << 20

	// maxNamed is how many sites a result names.
	maxNamed = 20
)

// openedStore is a store that was checked.
type openedStore struct {
	db      *database.DB     // nil if it could not be opened, or is not there yet
	members *memberstore.SQL // nil if it has no tables, or not those of this version
	sites   *sites.SQL       // nil as well, or if sites in the store are not served
	isNew   bool             // Caddy makes the tables when it starts
	err     error            // why members is nil
}

func (s openedStore) close() {
	if s.db != nil {
		_ = s.db.Close() // nothing was written
	}
}

var (
	errNoStore    = errors.New("the store cannot be used")
	errOlderStore = errors.New("the store is of an older Lychgate")
)

// webhook finds the address that is registered for webhook events of a site, "" for none.
func (s openedStore) webhook(ctx context.Context, site string) (string, error) {
	if s.isNew {
		return "", nil
	}
	if s.members == nil {
		return "", cmp.Or(s.err, errNoStore)
	}
	w, err := s.members.FindWebhook(ctx, site)
	if errors.Is(err, members.ErrNotFound) || err == nil && w.RegisteredAt.IsZero() {
		return "", nil
	}
	return w.URL, err
}

func (s *Store) name() string { return string(s.Kind) + " " + database.Place(s.Kind, s.Source) }

// compareStore warns if the Caddy that runs has another store than the one that was checked.
func (c Config) compareStore(ctx context.Context, r Result) Result {
	if c.RunningStore == nil || r.Status != OK {
		return r
	}
	if running := c.RunningStore(ctx); running != "" && running != database.Place(c.Store.Kind, c.Store.Source) {
		return warn(r.Message+", but the Caddy that runs has its store at "+running, "reload Caddy if the configuration has changed, or run this as the user that Caddy runs as, and with its environment")
	}
	return r
}

// check opens the store, if it is there, and checks whether it can be written and has
// free space. It neither makes it nor brings its tables up to date.
func (s *Store) check(ctx context.Context) (openedStore, Result) {
	if s.Kind == database.SQLite {
		if _, err := os.Stat(s.Source); errors.Is(err, os.ErrNotExist) {
			if err := database.CheckNew(s.Source); err != nil {
				return openedStore{}, unopened(err)
			}
			return openedStore{isNew: true}, withFreeSpace(s, ok("is not there yet; Caddy makes it when it starts"))
		}
	}
	db, err := database.Open(ctx, s.Kind, s.Source)
	if err != nil && s.Kind == database.SQLite {
		return openedStore{}, unopened(err)
	}
	if err != nil {
		return openedStore{}, fail(err.Error(), "see that it runs, and that its address, database, user and password are right")
	}
	opened := openedStore{db: db}
	r, err := s.examine(ctx, &opened)
	if err != nil {
		return opened, fail(err.Error(), "see that it answers, and that its user may write")
	}
	if r.Status != OK {
		return opened, withFreeSpace(s, r)
	}
	ahead, err := db.Ahead(ctx)
	if err != nil {
		return opened, fail(err.Error(), "see that it answers")
	}
	return opened, withFreeSpace(s, clocks(r, ahead))
}

func newerStore(s database.Schema, v database.Version) Result {
	return fail(fmt.Sprintf("is of a newer Lychgate: its tables of %s have version %d, and this one knows %d", s.Name, v.Has, v.Known), "run the newer Lychgate")
}

// examine looks at the tables of all that uses the store, and whether they can be
// written.
func (s *Store) examine(ctx context.Context, opened *openedStore) (r Result, err error) {
	r = ok("can be read and written")
	for _, schema := range []database.Schema{contacts.Schema, history.Schema, audit.Schema} { // which Caddy makes and brings up to date
		v, err := schema.Version(ctx, opened.db)
		if err != nil {
			return Result{}, err
		}
		if !v.IsUsable() {
			return newerStore(schema, v), nil
		}
	}
	for _, part := range []struct {
		used bool
		database.Schema
	}{{s.Members, memberstore.Schema}, {s.Themes, themes.Schema}, {s.Curation || s.Events, work.Schema}, {s.Curation, curation.Schema}, {s.Events, events.Schema}, {s.Keys != nil, sites.Schema}} {
		if !part.used {
			continue
		}
		v, err := part.Version(ctx, opened.db)
		switch {
		case err != nil:
			return Result{}, err
		case !v.IsUsable():
			return newerStore(part.Schema, v), nil
		case v.Has > v.Known:
			r = ok("is of a newer Lychgate, beside which this one may run: its tables of %s have version %d, and this one knows %d", part.Name, v.Has, v.Known)
		case v.Has == 0:
			opened.isNew = opened.isNew || part.Name == "members"
			r = ok("has no tables of %s yet; Caddy makes them when it starts", part.Name)
		case v.Has < v.Known:
			opened.err = errOlderStore
			r = warn(fmt.Sprintf("is of an older Lychgate: its tables of %s have version %d, and this one brings them to %d when Caddy starts", part.Name, v.Has, v.Known), "back it up before you start this one")
		}
		if err := part.TryWrite(ctx, opened.db, v.Has > 0); err != nil {
			return Result{}, err
		}
	}
	if s.Members && opened.err == nil && !opened.isNew {
		opened.members, err = memberstore.NewSQL(ctx, opened.db)
	}
	if v, versionErr := sites.Schema.Version(ctx, opened.db); s.Keys != nil && v.Has >= v.Known && err == nil && versionErr == nil {
		opened.sites, err = sites.NewSQL(ctx, opened.db, s.Keys)
	}
	return r, err
}

// refused lists the writes that platforms refuse for good, nil for none. It has no
// member's data but what a platform says of one.
func (s openedStore) refused(ctx context.Context) *Result {
	const mostReasons = 3
	list, err := s.members.CountRefused(ctx)
	if err != nil {
		return new(fail(err.Error(), "see that the store answers"))
	}
	var sites []string
	for len(list) > 0 {
		of, n := list, 0
		for i, r := range list {
			if r.Site != list[0].Site {
				of = list[:i]
				break
			}
		}
		var reasons []string
		for _, r := range of {
			n += r.Members
			reasons = append(reasons, fmt.Sprintf("%d: %s", r.Members, r.Reason))
		}
		if len(reasons) > mostReasons {
			reasons = append(reasons[:mostReasons], "…")
		}
		sites = append(sites, fmt.Sprintf("%s of site %s (%s)", english.Plural(n, "member", ""), of[0].Site, strings.Join(reasons, "; ")))
		list = list[len(of):]
	}
	if len(sites) == 0 {
		return nil
	}
	if len(sites) > maxNamed {
		sites = append(sites[:maxNamed], "…")
	}
	return new(warn("the platform will not take the last write of "+strings.Join(sites, ", "),
		"correct or delete these members: /lychgate/pending on the admin API has their guids, and caddy lychgate members show says who they are"))
}

// hosts are those of all sites in the store.
func (s openedStore) hosts(ctx context.Context) (hosts []string, err error) {
	if s.sites == nil {
		return nil, nil
	}
	for site, err := range s.sites.All(ctx) {
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, site.Hosts...)
	}
	return hosts, nil
}

// checkSites checks whether the keys of all sites in the store can be opened.
func (s openedStore) checkSites(ctx context.Context) Result {
	n := 0
	var locked []string
	var problem error
	for site, err := range s.sites.All(ctx) {
		if err != nil {
			return fail(err.Error(), "see that the store answers")
		}
		n++
		if site.Locked != nil {
			locked, problem = append(locked, site.Name), site.Locked
		}
	}
	if len(locked) == 0 {
		return ok("%s, whose keys can be opened", english.Plural(n, "site", ""))
	}
	shown := strings.Join(locked[:min(len(locked), maxNamed)], ", ")
	if len(locked) > maxNamed {
		shown += ", …"
	}
	return fail(fmt.Sprintf("the keys of %d of %s cannot be opened: %s (%v)", len(locked), english.Plural(n, "site", ""), shown, problem),
		"write the secret that sealed them behind the others in secret, or give each its key again: caddy lychgate site update <name> --admin-key -")
}

// unopened is the result of a file that cannot be opened. The error says what to do.
func unopened(err error) Result {
	if strings.Contains(err.Error(), "cannot be written") {
		return fail(err.Error(), "run this as the user that Caddy runs as, if it is another")
	}
	return fail(err.Error(), "")
}

// withFreeSpace adds to the result of a file how much of the disk is free.
func withFreeSpace(s *Store, r Result) Result {
	if s.Kind != database.SQLite || r.Status != OK {
		return r
	}
	free, known := freeBytes(database.Existing(s.Source))
	if !known {
		return r
	}
	return freeSpace(r, free)
}

func freeSpace(r Result, free uint64) Result {
	r.Message += ", " + humanize.IBytes(free) + " are free"
	switch {
	case free < minSpace:
		return fail(r.Message+", so writes are about to fail", "make room on the disk")
	case free < lowSpace:
		return warn(r.Message, "make room on the disk")
	}
	return r
}
