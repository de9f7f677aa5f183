package versions

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// The last release and this Lychgate share a store: each goes on with what the other one has
// begun, and nothing is lost or there twice. It stays so after the next release has
// migrated the store, also for an edge that is started then.
func TestSideBySide(t *testing.T) {
	last := lastRelease(t)
	f := newFleet(t, last)
	if diff := cmp.Diff(f.versions(), pinnedVersions(t)); diff != "" {
		t.Errorf("last_release does not say what its binary makes (-binary +file), run e2e/versions/pin:\n%s", diff)
	}
	f.add(caddytest.Build(t))
	want := content{Members: make(map[string]member), Posts: make(map[string]int)}
	c := &callers{
		crm: f.newCaller("Authorization", "Bearer "+emailKey), shop: f.newCaller("Authorization", "Bearer "+customKey),
		jane: f.newReader(0, "jane@example.com"), john: f.newReader(1, "john@example.com"),
	}
	want.Members["jane@example.com"] = member{Labels: []string{}, Count: 1}
	want.Members["john@example.com"] = member{Labels: []string{"Party a", "Party b", "Party c", "Party d"}, Count: 1}
	f.exchange(c, 0, 1, marks[0], want)
	f.exchange(c, 1, 0, marks[1], want)

	f.migrateAsNext()
	for n, binary := range []string{last, caddytest.Build(t)} {
		f.stop(n)
		f.start(n, binary)
	}
	f.exchange(c, 0, 1, marks[2], want)
	f.exchange(c, 1, 0, marks[3], want)

	for n, binary := range []string{last, caddytest.Build(t)} {
		f.leavePending(c.crm, n, binary, want)
	}
	wait.Until(t, func() string { return cmp.Diff(want, f.inGhost()) })

	f.refuse(last)
}

// content is what Ghost has.
type content struct {
	Members map[string]member // by email, with how often it is there
	Posts   map[string]int    // how often, by title
}

type member struct {
	Name, Note string
	Labels     []string
	Count      int
}

// The edges of [TestSideBySide].
const lastLychgate, thisLychgate = 0, 1

// callers are the programs of a CRM and of a shop, and two readers.
type callers struct{ crm, shop, jane, john *caller }

// exchange has two edges work on the same things by turns. All of them have a mark.
func (f *fleet) exchange(c *callers, first, second int, mark string, want content) {
	f.t.Helper()
	f.exchangeMembers(c.crm, c.shop, first, second, mark, want)
	e := f.exchangeEvent(first, second, mark, want)
	f.exchangeRegistrations(c, first, second, mark)
	f.exchangeSlot(first, second, e)
	f.exchangeSite(first, second, mark)
	f.exchangeTheme(first, second, mark)
}

// marks are those of the exchanges.
var marks = []string{"a", "b", "c", "d"}

// swapped is a theme that two edges change by turns.
func swapped(mark string) string { return "swapped-" + mark }

func (f *fleet) exchangeMembers(crm, shop *caller, first, second int, mark string, want content) {
	f.t.Helper()
	const members = "/integration/members"
	email := func(name string) string { return name + "-" + mark + "@example.com" }
	body := map[string]any{"email": email("crm"), "name": "Jane", "labels": []string{"VIP"}}
	ask := func(edge int) string {
		_, text := crm.try(f.t.Context(), edge, "POST", members, body, http.Header{"Idempotency-Key": {mark}})
		return text
	}
	made := ask(first)
	if repeated := ask(second); repeated != made || !strings.Contains(made, `"success":true`) {
		f.t.Errorf("a create at edge %d, and its repeat at %d: got %s and %s, want the same success", first, second, made, repeated)
	}
	crm.do(second, "PUT", members+"/"+email("crm"), map[string]any{"labels": []string{"Second", "VIP"}}, nil)
	shop.do(second, "POST", members, map[string]any{"email": email("shop"), "name": "John", "member_id": mark}, nil)
	shop.do(first, "PUT", members+"/"+mark, map[string]any{"note": "changed"}, nil)
	crm.do(first, "POST", members, map[string]any{"email": email("gone")}, nil)
	crm.do(second, "DELETE", members+"/"+email("gone"), nil, nil)
	want.Members[email("crm")] = member{"Jane", "", []string{"Second", "VIP"}, 1}
	want.Members[email("shop")] = member{"John", "changed", []string{}, 1}

	for edge := range f.edges {
		got := make(map[string]member)
		for _, name := range []string{"crm", "shop"} {
			var response struct{ Data member }
			crm.do(edge, "GET", members+"/"+email(name), nil, &response)
			response.Data.Count = 1
			got[email(name)] = response.Data
		}
		expected := map[string]member{email("crm"): want.Members[email("crm")], email("shop"): want.Members[email("shop")]}
		if diff := cmp.Diff(expected, got); diff != "" {
			f.t.Errorf("members at edge %d (-want +got):\n%s", edge, diff)
		}
		if status, text := crm.try(f.t.Context(), edge, "GET", members+"/"+email("gone"), nil, nil); status != http.StatusNotFound {
			f.t.Errorf("a member that was deleted, at edge %d: got %d, %s, want 404", edge, status, text)
		}
	}
}

// event is what the staff's JSON says of an event.
type event struct {
	ID, Status string
	Values     map[string]any
	Post       *struct{ ID string }
	Pending    *struct{ Problem string }
}

// eventBody is an event as staff send it.
func eventBody(name, slug string, more map[string]any) map[string]any {
	values := map[string]any{"name": name, "slug": slug, "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "UTC", "speaker": "Ada", "access": "free"}
	maps.Copy(values, more)
	return map[string]any{"theme": themeName, "type": "webinar", "values": values}
}

const desk = "/ghost/lychgate/desk/events"

func (f *fleet) exchangeEvent(first, second int, mark string, want content) (e event) {
	f.t.Helper()
	slug, name := "party-"+mark, "Party "+mark
	more := map[string]any{"max_attendees": 1, "rsvp_labels": []string{name}}
	f.owner.do(first, "POST", desk, eventBody("Draft", slug, more), &e)
	f.owner.do(second, "POST", desk+"/"+e.ID+"/publish", nil, &e)
	wait.Until(f.t, func() string { // for a Ghost that is slow, edges bring it there later
		if f.owner.do(second, "GET", desk+"/"+e.ID, nil, &e); e.Post == nil {
			return fmt.Sprintf("the event that edge %d published has no post: %+v", second, e)
		}
		return ""
	})
	f.owner.do(first, "PUT", desk+"/"+e.ID, eventBody(name, slug, more), nil)
	want.Posts[name]++
	for edge := range f.edges {
		wait.Until(f.t, func() string {
			var kept event
			f.owner.do(edge, "GET", desk+"/"+e.ID, nil, &kept)
			_, public := f.owner.try(f.t.Context(), edge, "GET", "/ghost/lychgate/events/"+slug, nil, nil)
			if kept.Status != "published" || kept.Pending != nil || kept.Post == nil || kept.Values["name"] != name || !strings.Contains(public, name) {
				return fmt.Sprintf("at edge %d: %+v, readers get %s; want it published, with its last name", edge, kept, public)
			}
			return ""
		})
	}
	return e
}

// exchangeRegistrations has readers want the only place of an event.
func (f *fleet) exchangeRegistrations(c *callers, first, second int, mark string) {
	f.t.Helper()
	type answer struct {
		Status int
		State  string
	}
	for _, step := range []struct {
		name, method string
		reader       *caller
		edge         int
		want         answer
	}{
		{"Jane registers", "PUT", c.jane, first, answer{200, "registered"}},
		{"Jane looks", "GET", c.jane, second, answer{200, "registered"}},
		{"John finds it full", "PUT", c.john, second, answer{409, "registration_closed"}},
		{"Jane cancels", "DELETE", c.jane, second, answer{200, "can_register"}},
		{"John registers", "PUT", c.john, first, answer{200, "registered"}},
		{"Jane finds it full", "PUT", c.jane, first, answer{409, "registration_closed"}},
	} {
		var got answer
		var text string
		got.Status, text = step.reader.try(f.t.Context(), step.edge, step.method, "/ghost/lychgate/events/party-"+mark+"/registration", nil, nil)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			f.t.Fatalf("%s: %s: %v", step.name, text, err)
		}
		if got != step.want {
			f.t.Errorf("%s, at edge %d: got %v, want %v", step.name, step.edge, got, step.want)
		}
	}
}

func (f *fleet) exchangeSlot(first, second int, e event) {
	f.t.Helper()
	f.owner.do(first, "PUT", "/ghost/lychgate/curation/front/lead", map[string]string{"post": e.Post.ID}, nil)
	wait.Until(f.t, func() string {
		var homepage struct {
			Sections []struct {
				Slots []struct{ Posts []struct{ ID string } }
			}
		}
		f.owner.do(second, "GET", "/ghost/lychgate/curation", nil, &homepage)
		if posts := homepage.Sections[0].Slots[0].Posts; len(posts) != 1 || posts[0].ID != e.Post.ID {
			return fmt.Sprintf("a slot that edge %d filled, at edge %d: got %v, want the post %s alone", first, second, posts, e.Post.ID)
		}
		return ""
	})
}

// exchangeSite has two edges manage a site in the store. The last release does not know of labels, and leaves
// them as they are.
func (f *fleet) exchangeSite(first, second int, mark string) {
	f.t.Helper()
	type site struct {
		Hosts  []string
		Labels []string
	}
	admin := func(edge int) *caller {
		return &caller{fleet: f, client: caddytest.Admin(f.edges[edge].AdminSocket), header: http.Header{}}
	}
	path, host := "/lychgate/sites/stored-"+mark, mark+".example.org"
	admin(first).do(first, "POST", "/lychgate/sites", map[string]any{"name": "stored-" + mark, "hosts": []string{host}, "platform": map[string]string{"kind": "none"}}, nil)
	admin(thisLychgate).do(thisLychgate, "PATCH", path, map[string]any{"labels": []string{"acme"}}, nil)
	admin(second).do(second, "PATCH", path, map[string]any{"hosts": []string{host, "www." + host}}, nil)
	admin(lastLychgate).do(lastLychgate, "PATCH", path, map[string]any{"hosts": []string{"www." + host, "new." + host}}, nil)
	var kept site
	admin(thisLychgate).do(thisLychgate, "GET", path, nil, &kept)
	if diff := cmp.Diff(site{[]string{"www." + host, "new." + host}, []string{"acme"}}, kept); diff != "" {
		f.t.Errorf("a site in the store (-want +got):\n%s", diff)
	}

	var integration struct{ Key string }
	admin(second).do(second, "POST", path+"/integrations", map[string]string{"name": "crm"}, &integration)
	stored := f.newCaller("Authorization", "Bearer "+integration.Key)
	stored.host = "new." + host
	const members = "/integration/members"
	for _, edge := range []int{first, second} {
		email := fmt.Sprintf("stored%d@example.com", edge)
		wait.Until(f.t, func() string {
			if status, text := stored.try(f.t.Context(), edge, "POST", members, map[string]string{"email": email}, http.Header{"Idempotency-Key": {email}}); status >= 300 || status == 0 {
				return fmt.Sprintf("creating a member of a site in the store at edge %d: got %d, %s, want a success", edge, status, text)
			}
			return ""
		})
	}
	for edge := range f.edges {
		for _, of := range []int{first, second} {
			stored.do(edge, "GET", fmt.Sprintf("%s/stored%d@example.com", members, of), nil, nil)
		}
	}
	admin(first).do(first, "DELETE", path, nil, nil)
	wait.Until(f.t, func() string {
		for edge := range f.edges {
			if status, text := stored.try(f.t.Context(), edge, "GET", members+"/stored0@example.com", nil, nil); status != http.StatusNotFound || !strings.Contains(text, "no site") {
				return fmt.Sprintf("a member of a site that was removed, at edge %d: got %d, %s, want no such site", edge, status, text)
			}
		}
		return ""
	})
}

// exchangeTheme has two edges change what is known of a theme, whose repository cannot be read.
func (f *fleet) exchangeTheme(first, second int, mark string) {
	f.t.Helper()
	name := swapped(mark)
	upload := func(edge int, manifest string) {
		f.t.Helper()
		f.uploadTheme(edge, name, fstest.MapFS{
			"index.hbs": {}, "post.hbs": {}, "custom-talk.hbs": {}, "lychgate-manifest.yaml": {Data: []byte(manifest)},
			"package.json": {Data: []byte(`{"name":"` + name + `","version":"1.0.0","author":{"email":"jane@example.com"},"config":{"posts_per_page":9}}`)},
		})
	}
	// known is what is said of the theme, or "" if it is not known: by each edge to staff, and by this
	// Lychgate to operators.
	type known struct{ Last, This, Failing string }
	check := func(after string, want known) {
		f.t.Helper()
		var got known
		for edge, status := range map[int]*string{lastLychgate: &got.Last, thisLychgate: &got.This} {
			var list struct {
				Themes []struct{ Name, Status string }
			}
			f.owner.do(edge, "GET", "/ghost/lychgate/themes", nil, &list)
			for _, theme := range list.Themes {
				if theme.Name == name {
					*status = theme.Status
				}
			}
		}
		admin := &caller{fleet: f, client: caddytest.Admin(f.edges[thisLychgate].AdminSocket), header: http.Header{}}
		var failing struct {
			Sites []struct{ Reasons []struct{ State string } }
		}
		admin.do(thisLychgate, "GET", "/lychgate/sites?state=failing", nil, &failing)
		for _, site := range failing.Sites {
			for _, reason := range site.Reasons {
				if reason.State == "manifest_findings" || reason.State == "theme_unreadable" {
					got.Failing += reason.State
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			f.t.Errorf("a theme that edges %d and %d change by turns, after %s (-want +got):\n%s", first, second, after, diff)
		}
	}
	const good = "manifest_version: 1\nevents:\n  types:\n    talk:\n      post_template: custom-talk\n"
	upload(first, good)
	check("an upload", known{"Valid", "Valid", ""})
	upload(second, good+"      supported_fields: [none]\n")
	check("an upload with a finding", known{"1 warning", "1 warning", "manifest_findings"})
	if status, text := f.owner.try(f.t.Context(), thisLychgate, "POST", "/ghost/lychgate/themes/"+name+"/refresh", nil, nil); status != http.StatusBadGateway {
		f.t.Errorf("a refresh that cannot be done: got %d, %s, want 502", status, text)
	}
	check("a refresh that could not be done", known{"1 warning", "1 warning", "manifest_findingstheme_unreadable"})
	upload(lastLychgate, good)
	check("an upload by the last release", known{"Valid", "Valid", ""})
	f.owner.do(second, "DELETE", "/ghost/api/admin/themes/"+name+"/", nil, nil)
	check("its removal", known{})
}

// leavePending has one edge write while Ghost is away, and end. The other one delivers it.
func (f *fleet) leavePending(crm *caller, edge int, binary string, want content) {
	f.t.Helper()
	email := []string{"crm-a@example.com", "crm-b@example.com"}[edge]
	m := want.Members[email]
	m.Name, m.Note = "Pending", "written while Ghost was away"
	want.Members[email] = m
	pending := func() (count int) {
		f.t.Helper()
		if err := f.db.Read.QueryRowContext(f.t.Context(), "SELECT COUNT(*) FROM members WHERE applied < version").Scan(&count); err != nil {
			f.t.Fatalf("f.db.Read.QueryRowContext: %v", err)
		}
		return count
	}
	delivered := func() string {
		if got := pending(); got != 0 {
			return fmt.Sprintf("got %d pending members, want none", got)
		}
		return ""
	}
	wait.Until(f.t, delivered)
	f.isAway.Store(true)
	crm.do(edge, "PUT", "/integration/members/"+email, map[string]any{"name": m.Name, "note": m.Note}, nil)
	if got := pending(); got != 1 {
		f.t.Errorf("while Ghost is away: got %d pending members, want 1", got)
	}
	f.stop(edge)
	f.isAway.Store(false)
	wait.Until(f.t, delivered)
	f.start(edge, binary)
}

// inGhost reads all members and posts of events.
func (f *fleet) inGhost() content {
	f.t.Helper()
	got := content{make(map[string]member), make(map[string]int)}
	for page := 1; page > 0; {
		var list struct {
			Members []struct {
				Email, Name, Note string
				Labels            []struct{ Name string }
			}
			Meta struct{ Pagination struct{ Next int } }
		}
		f.owner.do(anyEdge, "GET", fmt.Sprintf("/ghost/api/admin/members/?limit=100&page=%d&order=id", page), nil, &list)
		for _, m := range list.Members {
			labels := []string{}
			for _, label := range m.Labels {
				labels = append(labels, label.Name)
			}
			slices.Sort(labels)
			got.Members[m.Email] = member{m.Name, m.Note, labels, got.Members[m.Email].Count + 1}
		}
		page = list.Meta.Pagination.Next
	}
	var posts struct{ Posts []struct{ Title string } }
	f.owner.do(anyEdge, "GET", "/ghost/api/admin/posts/?limit=100&filter=tag:hash-event", nil, &posts)
	for _, post := range posts.Posts {
		got.Posts[post.Title]++
	}
	return got
}

// pinnedVersions is what last_release says of tables, by the names of their schemas.
func pinnedVersions(t *testing.T) map[string]string {
	t.Helper()
	versions := pinned(t)
	versions["members"] = versions["memberstore"]
	for _, name := range []string{"commit", "memberstore"} {
		delete(versions, name)
	}
	return versions
}

// versions are those of the tables that are there.
func (f *fleet) versions() map[string]string {
	f.t.Helper()
	versions := make(map[string]string)
	for _, table := range f.tables() {
		name, isVersion := strings.CutPrefix(table, "migrations_")
		if !isVersion || name == "compatible" {
			continue
		}
		var version int
		if err := f.db.Read.QueryRowContext(f.t.Context(), "SELECT MAX(version_id) FROM "+table).Scan(&version); err != nil {
			f.t.Fatalf("f.db.Read.QueryRowContext: %v", err)
		}
		versions[name] = strconv.Itoa(version)
	}
	return versions
}

func (f *fleet) tables() []string {
	f.t.Helper()
	tables, err := database.List(f.t.Context(), f.db.Read, database.Text, "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY table_name")
	if err != nil {
		f.t.Fatalf("database.List: %v", err)
	}
	return tables
}

// migrateAsNext migrates the store as the release after this one may: to each table it adds a
// column that may be null, one with a default, and an index, and it adds a table.
func (f *fleet) migrateAsNext() {
	f.t.Helper()
	for _, table := range f.tables() {
		var statement string
		switch {
		case table == "migrations_compatible":
			continue
		case strings.HasPrefix(table, "migrations_"):
			statement = "CREATE TABLE next_" + table + " (id TEXT PRIMARY KEY); INSERT INTO " + table + " (version_id, is_applied) SELECT MAX(version_id) + 1, TRUE FROM " + table
		default:
			statement = "ALTER TABLE " + table + " ADD COLUMN next_text TEXT; ALTER TABLE " + table + " ADD COLUMN next_number BIGINT NOT NULL DEFAULT 0; CREATE INDEX next_" + table + " ON " + table + " (next_number)"
		}
		if _, err := f.db.Write.ExecContext(f.t.Context(), statement); err != nil {
			f.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// refuse raises the version that may use the members, as a release does that cannot do without. An
// edge of the last release is not to write them then.
func (f *fleet) refuse(last string) {
	f.t.Helper()
	if _, err := f.db.Write.ExecContext(f.t.Context(), "UPDATE migrations_compatible SET version = (SELECT MAX(version_id) FROM migrations_members) WHERE name = 'members'"); err != nil {
		f.t.Fatalf("f.db.Write.ExecContext: %v", err)
	}
	f.stop(0)
	f.run(0, last)
	wait.Until(f.t, func() string {
		log, err := os.ReadFile(f.edges[0].LogFile)
		if err != nil || !strings.Contains(string(log), "the store is of a newer Lychgate: members has version") {
			return fmt.Sprintf("the log of the last release does not say that the store is of a newer Lychgate; %v", err)
		}
		return ""
	})
	if status, text := f.newCaller("Authorization", "Bearer "+emailKey).try(f.t.Context(), 0, "GET", "/integration/members/crm-a@example.com", nil, nil); status == http.StatusOK {
		f.t.Errorf("members at an edge that may not use the store: got %d, %s, want a failure", status, text)
	}
}
