package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // Ghost's database

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// This file measures how long somebody waits for the pages of the desk, and how much of that
// is Ghost's own time. It needs a Ghost of its own on SQLite, whose posts it replaces.

const pagesCaddyfile = `{
	{{global}}
	log {
		level WARN
	}
	lychgate {
		store sqlite {{folder}}/lychgate.db
		site bench {
			hosts 127.0.0.1
			platform ghost {{ghost}} {
				admin_key {{key}}
				webhooks off
				reconcile off
			}
		}
	}
}
http://127.0.0.1:{{port}} {
	{{encode}}
	staff_desk
	members_api
	reverse_proxy {{ghost}}
}
`

// publication is how large a site is that is measured.
type publication struct{ slots, posts int }

var publications = []publication{{5, 10}, {50, 10_000}}

var deskPages = []struct{ name, target string }{
	{"Homepage Curation", "curation"},
	{"the picker, Recent", "curation?slot=top/s0&view=recent"},
	{"the picker, Search", "curation?slot=top/s0&view=search&q=bridges"},
	{"Move", "curation?slot=top/s0&move="},
	{"Themes", "themes"},
	{"Integrations", "integrations"},
	{"Sync", "sync"},
}

// measurePages measures all pages, of a small publication and of a large one.
func measurePages(ctx context.Context, ghost *ghosttest.Ghost) error {
	for _, p := range publications {
		if err := p.fill(ctx, filepath.Join(ghost.Folder(), "ghost.db")); err != nil {
			return err
		}
		if err := p.measure(ctx, ghost); err != nil {
			return err
		}
	}
	return nil
}

func (p publication) measure(ctx context.Context, ghost *ghosttest.Ghost) error {
	folder, err := os.MkdirTemp("", "lychgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	before, err := benchtest.NewProxy(ghost.URL)
	if err != nil {
		return err
	}
	defer before.Close()
	if err := p.declare(ctx, filepath.Join(folder, "lychgate.db")); err != nil {
		return err
	}
	edge, err := caddytest.Start(folder, pagesCaddyfile, caddytest.Values{"ghost": before.URL, "key": ghost.Key, "encode": ""})
	if err != nil {
		return err
	}
	defer edge.Stop()
	cookie, err := signIn(ctx, ghost)
	if err != nil {
		return err
	}
	fmt.Printf("%d slots, %d posts: median and worst of %d\n%-22s %17s %17s %9s %9s\n", p.slots, p.posts, *rounds, "", "page", "of it Ghost", "requests", "size")
	for _, page := range deskPages {
		var all, ghosts, asked []float64
		size := 0
		for round := range *rounds + 3 { // three of which warm up
			start := time.Now()
			size, err = open(ctx, "http://127.0.0.1:"+edge.Port+"/ghost/lychgate/desk/"+page.target, cookie)
			if err != nil {
				return fmt.Errorf("%s: %w", page.name, err)
			}
			end := time.Now()
			if took, requests := before.Busy(start, end); round >= 3 {
				all, ghosts = append(all, end.Sub(start).Seconds()*1e3), append(ghosts, took.Seconds()*1e3)
				asked = append(asked, float64(requests))
			}
		}
		fmt.Printf("%-22s %8.1f %5.0f ms %8.1f %5.0f ms %9.0f %6d KB\n", page.name, benchtest.Median(all), maxOf(all), benchtest.Median(ghosts), maxOf(ghosts), benchtest.Median(asked), size>>10)
	}
	return nil
}

func maxOf(values []float64) (most float64) {
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

// open asks for a page, and returns how long it is.
func open(ctx context.Context, address, cookie string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Cookie", cookie)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return len(text), err
}

// declare keeps the manifest of a publication.
func (p publication) declare(ctx context.Context, store string) error {
	var text strings.Builder
	text.WriteString("manifest_version: 1\nhomepage_curation:\n  sections:\n    - key: top\n      name: Top stories\n      slots:\n")
	for i := range p.slots {
		fmt.Fprintf(&text, "        - {key: s%[1]d, label: Story %[1]d, tag: \"#slot-%[1]d\"}\n", i)
	}
	return declare(ctx, store, text.String())
}

// declare keeps a manifest for the theme that a new Ghost has active.
func declare(ctx context.Context, store, text string) error {
	db, err := database.Open(ctx, database.SQLite, store)
	if err != nil {
		return err
	}
	kept, err := themes.NewSQL(ctx, db)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	service := themes.Service{Site: "bench", Store: kept, Now: time.Now}
	report, err := service.Take(ctx, "source", func(context.Context) ([]byte, error) { return []byte(text), nil })
	if err == nil && len(report.Findings) > 0 {
		err = fmt.Errorf("findings: %v", report.Findings)
	}
	return errors.Join(err, db.Close())
}

// fill replaces the posts of a Ghost, whose database is a file. Each slot's tag is carried by
// one of the posts. The first post that Ghost itself has made is the pattern of all.
func (p publication) fill(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, statement := range []string{
		"DELETE FROM posts_tags", "DELETE FROM posts_authors WHERE post_id LIKE 'bbbb%'", "DELETE FROM posts WHERE id LIKE 'bbbb%'", "DELETE FROM tags WHERE id LIKE 'bbbb%'",
		"CREATE TEMPORARY TABLE pattern AS SELECT * FROM posts WHERE slug = 'coming-soon'",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	subjects := []string{"bridges", "roads", "the council", "choirs", "markets"}
	for i := range p.posts {
		id := fmt.Sprintf("bbbb%020x", i)
		statements := []struct {
			text string
			args []any
		}{
			{"UPDATE pattern SET id = $1, uuid = $1, comment_id = $1, slug = $1, title = $2, feature_image = $3, published_at = $4", []any{
				id, fmt.Sprintf("What was said about %s, part %d", subjects[i%len(subjects)], i), "__GHOST_URL__/content/images/2026/01/" + id + ".jpg",
				time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC).Format(time.DateTime),
			}},
			{"INSERT INTO posts SELECT * FROM pattern", nil},
			{"INSERT INTO posts_authors (id, post_id, author_id, sort_order) SELECT $1, $1, author_id, 0 FROM posts_authors LIMIT 1", []any{id}},
		}
		for _, s := range statements {
			if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
				return fmt.Errorf("%s: %w", s.text, err)
			}
		}
	}
	for i := range p.slots {
		id := fmt.Sprintf("bbbb%020x", i)
		_, err := tx.ExecContext(ctx, `INSERT INTO tags (id, name, slug, visibility, created_at, created_by) VALUES ($1, $2, $3, 'internal', '2026-01-01 00:00:00', '1')`,
			id, fmt.Sprint("#slot-", i), fmt.Sprint("hash-slot-", i))
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO posts_tags (id, post_id, tag_id, sort_order) VALUES ($1, $2, $1, 0)", id, fmt.Sprintf("bbbb%020x", i%p.posts))
		}
		if err != nil {
			return fmt.Errorf("tag %d: %w", i, err)
		}
	}
	if _, err := tx.ExecContext(ctx, "DROP TABLE pattern"); err != nil {
		return err
	}
	return tx.Commit()
}
