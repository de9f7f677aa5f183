package ghost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// event is what the real Ghost sends.
type event struct {
	signature string
	body      []byte
}

// Each change of a member, labels alone included, sends an event, and nobody but
// Ghost can say so.
func TestMemberChangesSendSignedWebhookEvents(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	sent := make(chan event, 100)
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case sent <- event{r.Header.Get("X-Ghost-Signature"), body}:
		default:
			w.WriteHeader(http.StatusGone) // the test is over
		}
	}))
	t.Cleanup(sink.Close)
	url := sink.URL + "/token"
	for range 2 { // the second time nothing is to do
		if err := client.Subscribe(ctx, url); err != nil {
			t.Fatalf("client.Subscribe: %v", err)
		}
	}
	var last event
	next := func(what, id string) {
		t.Helper()
		for {
			select {
			case last = <-sent:
			case <-time.After(time.Minute):
				t.Fatalf("%s: no event", what)
			}
			got, err := client.ReadEvent(url, last.signature, last.body, time.Now())
			if err != nil {
				t.Fatalf("ReadEvent of %s: %v", what, err)
			}
			if got == id {
				return
			}
		}
	}
	created, err := client.Create(ctx, platform.Member{Email: unique("changed"), Name: "N"})
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	next("created", created.ID)
	if _, err := client.Update(ctx, created.ID, platform.Change{Labels: &[]string{"new"}}); err != nil {
		t.Fatalf("client.Update: %v", err)
	}
	next("labelled", created.ID)
	if err := client.Delete(ctx, created.ID); err != nil {
		t.Fatalf("client.Delete: %v", err)
	}
	next("deleted", created.ID)

	now := time.Now()
	other := newClient(t, Config{URL: "http://127.0.0.1:2368", AdminKey: testKey})
	for name, read := range map[string]func() (string, error){
		"another body": func() (string, error) {
			return client.ReadEvent(url, last.signature, append(slices.Clip(last.body), ' '), now)
		},
		"another address": func() (string, error) { return client.ReadEvent(url+"2", last.signature, last.body, now) },
		"another key":     func() (string, error) { return other.ReadEvent(url, last.signature, last.body, now) },
		"too late": func() (string, error) {
			return client.ReadEvent(url, last.signature, last.body, now.Add(replayWindow+time.Second))
		},
		"too early": func() (string, error) {
			return client.ReadEvent(url, last.signature, last.body, now.Add(-replayWindow-time.Minute))
		},
		"no signature":   func() (string, error) { return client.ReadEvent(url, "", last.body, now) },
		"no time":        func() (string, error) { return client.ReadEvent(url, last.signature[:71], last.body, now) },
		"no hexadecimal": func() (string, error) { return client.ReadEvent(url, "sha256=x, t=1", last.body, now) },
	} {
		if id, err := read(); !errors.Is(err, platform.ErrForged) {
			t.Errorf("%s: got %q, %v, want %v", name, id, err, platform.ErrForged)
		}
	}
}

// A read tells who pays, and all members can be walked through.
func TestGetAndList(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	var tiers struct {
		Tiers []struct{ ID, Type string } `json:"tiers"`
	}
	if err := client.memberClient.call(ctx, http.MethodGet, "/tiers/", nil, nil, &tiers); err != nil {
		t.Fatalf("client.memberClient.call: %v", err)
	}
	paid := tiers.Tiers[slices.IndexFunc(tiers.Tiers, func(tier struct{ ID, Type string }) bool { return tier.Type == "paid" })].ID
	var response members
	given := map[string]any{"members": []any{map[string]any{"email": unique("given"), "tiers": []any{tier{paid}}}}}
	if err := client.memberClient.call(ctx, http.MethodPost, "/members/", nil, given, &response); err != nil {
		t.Fatalf("client.memberClient.call: %v", err)
	}
	want := fromWire(response.Members[0])
	if want.Status != "complimentary" || want.TierID != paid {
		t.Errorf("%+v, want the tier %s", want, paid)
	}
	got, err := client.Get(ctx, want.ID)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Get: %v, member (-want +got):\n%s", err, diff)
	}
	if _, err := client.Get(ctx, "0123456789abcdef01234567"); !errors.Is(err, platform.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
	own := []string{want.ID} // other tests have theirs in this Ghost
	for range 101 {
		m, err := client.Create(ctx, platform.Member{Email: unique("listed")})
		if err != nil {
			t.Fatalf("client.Create: %v", err)
		}
		own = append(own, m.ID)
	}
	var listed []platform.Member
	for after := ""; ; {
		page, total, err := client.List(ctx, after, time.Time{})
		if err != nil {
			t.Fatalf("client.List: %v", err)
		}
		left := 0 // of ours at least: those of other tests come and go, also between Ghost's page and its count
		for _, id := range own {
			if id > after {
				left++
			}
		}
		if total < left {
			t.Errorf("%d members are left after %q, and %d of this test", total, after, left)
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].ID
		listed = append(listed, page...)
	}
	i := slices.IndexFunc(listed, func(m platform.Member) bool { return m.ID == want.ID })
	if i < 0 || len(listed) < 102 {
		t.Fatalf("%d members, number %d", len(listed), i)
	}
	if diff := cmp.Diff(want, listed[i]); diff != "" {
		t.Errorf("listed[i] (-want +got):\n%s", diff)
	}
	// An hour is more than this test takes, and what other tests change meanwhile.
	for since, there := range map[time.Duration]bool{-time.Minute: true, time.Hour: false} {
		page, _, err := client.List(ctx, "", want.UpdatedAt.Add(since))
		if err != nil {
			t.Fatalf("client.List: %v", err)
		}
		if got := len(page) > 0; got != there {
			t.Errorf("changed since %s: %d", since, len(page))
		}
	}
	if n, _, err := client.Count(ctx); n < 102 || err != nil {
		t.Errorf("%d members, %v", n, err)
	}
	// Those who are there are found among those who are not, as many as are asked for
	// at once.
	for i, id := range own {
		if i%2 == 0 {
			continue
		}
		if err := client.Delete(ctx, id); err != nil {
			t.Errorf("client.Delete: %v", err)
		}
	}
	var left, found []string
	for i, id := range own[:100] {
		if i%2 == 0 {
			left = append(left, id)
		}
	}
	list, err := client.GetAll(ctx, own[:100])
	if err != nil {
		t.Fatalf("client.GetAll: %v", err)
	}
	for _, m := range list {
		found = append(found, m.ID)
	}
	if diff := cmp.Diff(left, found, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	for i, id := range own {
		if i%2 == 1 {
			continue
		}
		if err := client.Delete(ctx, id); err != nil {
			t.Errorf("client.Delete: %v", err)
		}
	}
}

// What only looks like a list of members is not believed: members that are missing would be
// removed.
func TestAnswersThatAreNoLists(t *testing.T) {
	const other = `{"members":[{"id":"other","email":"a@example.com"}],"meta":{"pagination":{"total":1}}}`
	for _, body := range []string{
		`{}`, `null`, `{"status":"maintenance"}`, `{"members":[]}`, `{"members":[],"meta":{}}`, `{"members":null,"meta":{"pagination":{"total":0}}}`,
		`{"members":[],"meta":{"pagination":{"total":3}}}`, other,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
		client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
		if list, err := client.GetAll(t.Context(), []string{"mine"}); err == nil {
			t.Errorf("%s, by ID: %v", body, list)
		}
		if list, _, err := client.List(t.Context(), "x", time.Time{}); err == nil {
			t.Errorf("%s, listed: %v", body, list)
		}
		if n, _, err := client.Count(t.Context()); err == nil && body != other {
			t.Errorf("%s, counted: %d", body, n)
		}
		server.Close()
	}
}

// What a list does not name is taken to be deleted, or free to be made. So an object of something in
// front of Ghost is no empty list.
func TestObjectsThatAreNoLists(t *testing.T) {
	const id = "0123456789abcdef01234567"
	for _, body := range []string{`{}`, `null`, `{"status":"maintenance"}`, `{"members":null,"posts":null,"labels":null,"tags":null}`, `{"members":{},"posts":"","labels":0,"tags":{}}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
		client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
		for name, ask := range map[string]func() error{
			"a member by email": func() error { _, err := client.FindByEmail(t.Context(), "jane@example.com"); return err },
			"a member's labels": func() error { _, _, err := client.LabelsOf(t.Context(), id); return err },
			"members by UUID":   func() error { _, err := client.MembersOf(t.Context(), []string{id}); return err },
			"labels":            func() error { _, err := client.Labels(t.Context(), ""); return err },
			"posts of events":   func() error { _, err := client.EventPosts(t.Context(), []string{id}); return err },
			"changed posts":     func() error { _, err := client.ChangedPosts(t.Context(), time.Unix(0, 0)); return err },
			"posts with a tag":  func() error { _, err := client.Tagged(t.Context(), []string{"#hero"}, 1); return err },
			"the publication":   func() error { _, err := client.Publication(t.Context()); return err },
			"posts with a title": func() error {
				_, err := client.Published(t.Context(), platform.PostSearch{Words: []string{"day"}, Most: 1})
				return err
			},
		} {
			if err := ask(); err == nil || errors.Is(err, platform.ErrNotFound) {
				t.Errorf("%s, if Ghost responds %s: %v, want an error that says nothing of what is there", name, body, err)
			}
		}
		server.Close()
	}
}

// Members whose labels fill a page's answer are listed in smaller pages.
func TestListOfLargeMembers(t *testing.T) {
	const each = 200 << 10
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		list := make([]map[string]string, limit)
		for i := range list {
			list[i] = map[string]string{"id": fmt.Sprintf("m%03d", i), "email": "a@example.com", "note": strings.Repeat("x", each)}
		}
		json.NewEncoder(w).Encode(map[string]any{"members": list, "meta": map[string]any{"pagination": map[string]any{"total": 1000}}})
	}))
	defer server.Close()
	client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	page, total, err := client.List(t.Context(), "", time.Time{})
	if len(page) != pageSize/8 || total != 1000 || err != nil {
		t.Errorf("%d of %d, %v", len(page), total, err)
	}
}

func TestBulkChangesAreDetected(t *testing.T) {
	c := newClient(t, Config{URL: "http://127.0.0.1:2368", AdminKey: testKey})
	for _, test := range []struct {
		request string
		want    bool
		later   int
	}{
		{"PUT /ghost/api/admin/members/bulk/", true, 0},
		{"PUT /ghost/api/admin/members/bulk", true, 0},
		{"PUT /blog/ghost/api/admin/members/bulk/", true, 0},
		{"PUT //Ghost//API/v4/admin/Members//bulk//", true, 0},
		{"PUT /ghost/api/canary/admin/members/bulk/", true, 0},
		{"DELETE /ghost/api/admin/members/", true, 0},
		{"DELETE /ghost/api/admin/members", true, 0},
		{"POST /ghost/api/admin/members/upload/", true, 4},
		{"POST /ghost/api/admin/db/", true, 4},
		{"PUT /ghost/api/admin/labels/1/", true, 0},
		{"DELETE /ghost/api/admin/labels/1/", true, 0},
		{"POST /ghost/api/admin/newsletters/", true, 0},
		{"PUT /ghost/api/admin/newsletters/1/", true, 0},
		{"DELETE /ghost/api/admin/members/1/suppression/", true, 0},

		{"GET /ghost/api/admin/members/", false, 0},
		{"POST /ghost/api/admin/members/", false, 0}, // of these Ghost tells
		{"PUT /ghost/api/admin/members/1/", false, 0},
		{"DELETE /ghost/api/admin/members/1/", false, 0},
		{"POST /ghost/api/admin/labels/", false, 0},
		{"POST /ghost/api/admin/session/", false, 0},
		{"PUT /ghost/api/content/members/bulk/", false, 0},
		{"PUT /members/bulk/", false, 0},
		{"PUT /ghost/api/admin/members/bulk/" + strings.Repeat("/", maxPath), false, 0},
	} {
		method, path, _ := strings.Cut(test.request, " ")
		later, got := c.ChangesInBulk(method, path)
		if got != test.want || len(later) != test.later {
			t.Errorf("ChangesInBulk of %.60s: got %t, %v, want %t, %d times", test.request, got, later, test.want, test.later)
		}
	}
}

// Of somebody who pays, the payment processor's name for the tier is told.
func TestTierOf(t *testing.T) {
	const ended = `{"status": "canceled", "price": {"tier": {"id": "prod_old"}}},`
	for text, want := range map[string]string{
		`{"status": "paid", "tiers": [{"id": "t1"}], "subscriptions": [` + ended + `{"status": "past_due", "price": {"tier": {"id": "prod_1", "tier_id": "t1"}}}]}`: "prod_1",
		`{"status": "comped", "tiers": [{"id": "t1"}], "subscriptions": [{"status": "active", "price": {"tier": {"id": "", "tier_id": "t1"}}}]}`:                    "t1",
		`{"status": "free", "tiers": [{"id": "t1"}]}`: "",
		`{"status": "paid"}`:                          "",
	} {
		var w member
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatalf("json.Unmarshal: %v", err)
		}
		if got := fromWire(w).TierID; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// An event that is signed right and malformed is told from one that is forged. Its error has
// nothing of the body, which may name a member.
func TestMalformedEvents(t *testing.T) {
	client := newClient(t, Config{URL: "http://127.0.0.1:2368", AdminKey: testKey})
	const url = "http://localhost/webhooks/token"
	now := time.Now()
	for name, body := range map[string]string{
		"no JSON":            `jane@example.com`,
		"nothing":            ``,
		"a list":             `["jane@example.com"]`,
		"another type":       `{"member":{"current":{"id":41}}}`,
		"a number too large": `{"member":{"current":{"id":1e999}}}`,
		"no member":          `{"post":{"current":{"id":"1"}}}`,
		"no ID":              `{"member":{"current":{"email":"jane@example.com"}}}`,
		"a long ID":          `{"member":{"current":{"id":"` + strings.Repeat("a", 101) + `"}}}`,
	} {
		sent := strconv.FormatInt(now.UnixMilli(), 10)
		signature := fmt.Sprintf("sha256=%x, t=%s", sign([]byte(client.secretFor(url)), body+sent), sent)
		if id, err := client.ReadEvent(url, signature, []byte(body), now); id != "" || err != platform.ErrMalformed { //nolint:errorlint // nothing is wrapped around it
			t.Errorf("%s: %q, %v, want %v", name, id, err, platform.ErrMalformed)
		}
	}
}
