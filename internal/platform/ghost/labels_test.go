package ghost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Many writers who share labels do not stand in each other's way, nor does a label
// that Ghost's database takes for another.
func TestSharedLabels(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	shared := unique("Shared")
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() {
			for n := range 4 {
				labels := []string{shared, unique("new"), fmt.Sprint("every ", n, shared)}
				m, err := client.Create(ctx, platform.Member{Email: unique("shares"), Labels: labels})
				if err != nil {
					t.Errorf("writer %d, %d: %v", writer, n, err)
					continue
				}
				slices.Sort(labels)
				slices.Sort(m.Labels)
				if diff := cmp.Diff(labels, m.Labels); diff != "" {
					t.Errorf("writer %d, %d: %s", writer, n, diff)
				}
				if _, err := client.Update(ctx, m.ID, platform.Change{Labels: &[]string{shared}}); err != nil {
					t.Errorf("writer %d, %d: %v", writer, n, err)
				}
				if err := client.Delete(ctx, m.ID); err != nil {
					t.Errorf("client.Delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// fold.Label tells labels apart as Ghost does, or Ghost takes two for one because of its database.
func TestLabelsAreFoldedAsGhostDoes(t *testing.T) {
	client := newClient(t, realConfig(t))
	for _, names := range [][]string{{"İstanbul", "istanbul"}, {"ſale", "sale"}, {"ΟΔΟΣ", "οδος", "οδοσ"}, {"\u212a", "k"}, {"Å", "å"}, {"ẞ", "ß", "ss"}} {
		suffix, kept := " "+unique(""), make(map[string]bool)
		for i := range names {
			names[i] += suffix // behind a space, so that a ς stays one
			kept[fold.Label(names[i])] = true
		}
		m, err := client.Create(t.Context(), platform.Member{Email: unique("folds"), Labels: names})
		if err != nil {
			t.Fatalf("creating a member with %q: %v", names, err)
		}
		found := make(map[string]bool)
		for _, label := range m.Labels {
			found[fold.Label(label)] = true
		}
		if len(found) != len(m.Labels) || os.Getenv("LYCHGATE_GHOST_MYSQL") == "" && len(found) != len(kept) {
			t.Errorf("Ghost keeps %q of %q: got %d apart, want %d", m.Labels, names, len(found), len(kept))
		}
		if err := client.Delete(t.Context(), m.ID); err != nil {
			t.Errorf("client.Delete: %v", err)
		}
	}
}

// The page of the admin for a label has the members who have it, whatever its slug is.
func TestMembersPage(t *testing.T) {
	client := newClient(t, realConfig(t))
	label := unique("Jane's „Summer“ party, 50 %")
	m, err := client.Create(t.Context(), platform.Member{Email: unique("labelled"), Labels: []string{label}})
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	defer client.Delete(context.WithoutCancel(t.Context()), m.ID)
	page, err := client.MembersPage(t.Context(), label)
	query, isPage := strings.CutPrefix(page, "/#/members?")
	values, _ := url.ParseQuery(query)
	if err != nil || !isPage {
		t.Fatalf("%q, %v, want a page of members", page, err)
	}
	var found struct{ Members []struct{ ID string } }
	if err := client.eventClient.call(t.Context(), http.MethodGet, "/members/", values, nil, &found); err != nil || len(found.Members) != 1 || found.Members[0].ID != m.ID {
		t.Errorf("%s: %+v, %v, want the member %s", page, found, err, m.ID)
	}
	if page, err := client.MembersPage(t.Context(), unique("nobody's")); page != "" || err != nil {
		t.Errorf("a label that is not there: %q, %v, want none", page, err)
	}
}

func TestLabelsThatAreTheSameToADatabase(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	in := func(list []string, all ...string) bool {
		return len(list) > 0 && !slices.ContainsFunc(list, func(name string) bool { return !slices.Contains(all, name) })
	}
	id := unique("")
	vip, accented := "VIP "+id, "víp "+id
	for _, asked := range [][]string{{vip}, {accented}, {vip, accented}, {"new " + id, "néw " + id}} {
		m, err := client.Create(ctx, platform.Member{Email: unique("folded"), Labels: asked})
		if err != nil || !in(m.Labels, append(asked, vip)...) {
			t.Errorf("created with %q: %q, %v", asked, m.Labels, err)
			continue
		}
		if m, err = client.Update(ctx, m.ID, platform.Change{Labels: &[]string{accented}}); err != nil || !in(m.Labels, vip, accented) {
			t.Errorf("changed to %q: %q, %v", accented, m.Labels, err)
		}
		if err := client.Delete(ctx, m.ID); err != nil {
			t.Errorf("client.Delete: %v", err)
		}
	}
}

// mysql answers as a Ghost on MySQL that has one label, and finds a deadlock some
// times first.
type mysql struct {
	deadlocks int64
	requests  atomic.Int64
}

func (g *mysql) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case strings.HasSuffix(r.URL.Path, "/labels/") && r.Method == http.MethodGet && strings.Contains(r.URL.Query().Get("filter"), "p'"):
		io.WriteString(w, `{"labels":[{"name":"VIP"}]}`)
	case strings.HasSuffix(r.URL.Path, "/labels/") && r.Method == http.MethodGet:
		io.WriteString(w, `{"labels":[]}`)
	case strings.HasSuffix(r.URL.Path, "/labels/"):
		w.WriteHeader(http.StatusCreated)
		w.Write(body)
	case g.requests.Add(1) <= g.deadlocks:
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, `{"errors":[{"type":"BookshelfRelationsError","code":"UPDATE_RELATION","message":"Unable to update nested relation."}]}`)
	default:
		w.Write(body)
	}
}

// A change of labels that Ghost's database undoes is sent again, with the labels that
// are there, and is known to have had no effect if that does not help.
func TestLabelsAreSentAgain(t *testing.T) {
	for deadlocks, want := range map[int64][]string{
		0:                 {"new", "víp", "vip"},
		1:                 {"new", "víp", "vip"},
		2:                 {"new", "VIP"},
		labelAttempts - 1: {"new", "VIP"},
		labelAttempts:     nil,
	} {
		ghost := &mysql{deadlocks: deadlocks}
		server := httptest.NewServer(ghost)
		client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
		m, err := client.Create(t.Context(), platform.Member{Email: "jane@example.com", Labels: []string{"new", "víp", "vip"}})
		if want == nil && !errors.Is(err, platform.ErrNoEffect) || want != nil && err != nil {
			t.Errorf("%d deadlocks: %v", deadlocks, err)
		}
		if diff := cmp.Diff(want, m.Labels); diff != "" {
			t.Errorf("%d deadlocks: %s", deadlocks, diff)
		}
		if n := ghost.requests.Load(); n != min(deadlocks+1, labelAttempts) {
			t.Errorf("%d deadlocks: %d requests", deadlocks, n)
		}
		server.Close()
	}
}

// Ghost says which refusal is about an email that somebody has.
func TestEmailThatIsTaken(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	email := unique("taken")
	m, err := client.Create(ctx, platform.Member{Email: email})
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	defer client.Delete(ctx, m.ID)
	other, err := client.Create(ctx, platform.Member{Email: unique("other")})
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	defer client.Delete(ctx, other.ID)
	for what, do := range map[string]func() error{
		"create": func() error { _, err := client.Create(ctx, platform.Member{Email: email}); return err },
		"update": func() error { _, err := client.Update(ctx, other.ID, platform.Change{Email: &email}); return err },
	} {
		refusal, ok := errors.AsType[*platform.Refusal](do())
		if !ok || !refusal.Taken {
			text, _ := json.Marshal(refusal)
			t.Errorf("%s: got %s, want a refusal for a taken email", what, text)
		}
	}
	_, err = client.Create(ctx, platform.Member{Email: "not an email"})
	if refusal, ok := errors.AsType[*platform.Refusal](err); !ok || refusal.Taken {
		t.Errorf("Create: got %v, want a refusal, not for a taken email", err)
	}
}
