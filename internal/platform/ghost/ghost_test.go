package ghost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// testKey has the form of a key that Ghost makes.
var testKey = "0123456789abcdef01234567:" + strings.Repeat("0f", 32)

// e2e/ghost/start has started that Ghost.
func realConfig(t *testing.T) Config {
	t.Helper()
	url, key := ghosttest.Real(t)
	return Config{URL: url, AdminKey: key, Timeout: time.Minute}
}

func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	client, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// unique is different in each run: runs share a Ghost.
func unique(name string) string {
	return fmt.Sprintf("%s+%d@example.com", name, time.Now().UnixNano())
}

// The rest is for Ghost to say.
var said = cmpopts.IgnoreFields(platform.Member{}, "ID", "UUID", "CreatedAt", "UpdatedAt", "Newsletters")

// createJane makes a member with all that one can have. want is what was asked for.
func createJane(t *testing.T, client *Client) (want, created platform.Member) {
	t.Helper()
	want = platform.Member{
		Email: unique("jane"), Name: "Jane 'Ж' Doe", Note: "a\nb", Subscribed: true,
		Labels: []string{"VIP", "a new label of " + t.Name()}, Status: "free",
	}
	created, err := client.Create(t.Context(), want)
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	return want, created
}

func TestRealMemberIsFoundUntilDeleted(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	want, created := createJane(t, client)
	if diff := cmp.Diff(want, created, said); diff != "" {
		t.Errorf("created: %s", diff)
	}
	if created.ID == "" || time.Since(created.CreatedAt).Abs() > time.Minute || len(created.Newsletters) != 1 {
		t.Errorf("created: %+v", created)
	}

	t.Run("found by email, whatever its case", func(t *testing.T) {
		for _, email := range []string{want.Email, strings.ToUpper(want.Email)} {
			found, err := client.FindByEmail(ctx, email)
			if err != nil || found.ID != created.ID {
				t.Errorf("FindByEmail(%q): got %+v, %v, want member %s", email, found, err, created.ID)
			}
		}
	})
	t.Run("an email that is taken is a refusal", func(t *testing.T) {
		var refusal *platform.Refusal
		if _, err := client.Create(ctx, want); !errors.As(err, &refusal) || refusal.Reason == "" {
			t.Errorf("Create: got %v, want a refusal with a reason", err)
		}
		joe, err := client.Create(ctx, platform.Member{Email: unique("joe")})
		if err != nil {
			t.Fatalf("client.Create: %v", err)
		}
		if _, err := client.Update(ctx, joe.ID, platform.Change{Email: &want.Email}); !errors.As(err, &refusal) {
			t.Errorf("Update: got %v, want a refusal", err)
		}
	})
	t.Run("deleted", func(t *testing.T) {
		if err := client.Delete(ctx, created.ID); err != nil {
			t.Fatalf("client.Delete: %v", err)
		}
		_, findErr := client.FindByEmail(ctx, want.Email)
		_, updateErr := client.Update(ctx, created.ID, platform.Change{Name: &want.Name})
		for _, err := range []error{findErr, updateErr, client.Delete(ctx, created.ID)} {
			if !errors.Is(err, platform.ErrNotFound) {
				t.Errorf("%v, want %v", err, platform.ErrNotFound)
			}
		}
	})
}

func TestRealMembersAreRefused(t *testing.T) {
	client := newClient(t, realConfig(t))
	for _, bad := range []platform.Member{
		{Email: "not an address"},
		{Email: unique("long"), Note: strings.Repeat("x", 2001)},
	} {
		var refusal *platform.Refusal
		if _, err := client.Create(t.Context(), bad); !errors.As(err, &refusal) || refusal.Reason == "" {
			t.Errorf("Create of %q: got %v, want a refusal with a reason", bad.Email, err)
		}
	}
}

// It changes nothing else.
func TestRealUpdateChangesWhatIsNamed(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	want, created := createJane(t, client)
	renamed := unique("renamed")
	var none []string
	for _, change := range []struct {
		platform.Change
		want func(*platform.Member)
	}{
		{platform.Change{Name: new("New")}, func(m *platform.Member) { m.Name = "New" }},
		{platform.Change{Name: new("")}, func(m *platform.Member) { m.Name = "" }},
		{platform.Change{Note: new("new")}, func(m *platform.Member) { m.Note = "new" }},
		{platform.Change{Note: new("")}, func(m *platform.Member) { m.Note = "" }},
		{platform.Change{Labels: &[]string{"only"}}, func(m *platform.Member) { m.Labels = []string{"only"} }},
		{platform.Change{Subscription: &platform.Subscription{}}, func(m *platform.Member) { m.Subscribed, m.Newsletters = false, []string{} }},
		{platform.Change{Labels: &none}, func(m *platform.Member) { m.Labels = nil }},
		{platform.Change{Email: &renamed}, func(m *platform.Member) { m.Email = renamed }},
		{platform.Change{Subscription: &platform.Subscription{Subscribed: true}}, func(m *platform.Member) { m.Subscribed, m.Newsletters = true, created.Newsletters }},
		{platform.Change{Subscription: &platform.Subscription{Subscribed: true}}, func(*platform.Member) {}},
		{platform.Change{Subscription: &platform.Subscription{Subscribed: true, Newsletters: created.Newsletters}}, func(*platform.Member) {}},
		{platform.Change{Email: &want.Email, Labels: &want.Labels}, func(m *platform.Member) { m.Email, m.Labels = want.Email, want.Labels }},
	} {
		before, err := client.Get(ctx, created.ID)
		if err != nil {
			t.Fatalf("client.Get: %v", err)
		}
		change.want(&before)
		updated, err := client.Update(ctx, created.ID, change.Change)
		if err != nil {
			t.Fatalf("client.Update: %v", err)
		}
		when := cmpopts.IgnoreFields(platform.Member{}, "UpdatedAt")
		if diff := cmp.Diff(before, updated, when); diff != "" {
			t.Errorf("Update with %+v (-want +got):\n%s", change.Change, diff)
		}
		after, err := client.Get(ctx, created.ID)
		if err != nil {
			t.Fatalf("client.Get: %v", err)
		}
		if diff := cmp.Diff(after, updated, when); diff != "" {
			t.Errorf("%+v, answered: %s", change.Change, diff)
		}
	}
}

func TestRealMembersAreFoundInAnyCaseAndWhole(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	email := unique("O'Case_%")
	m, err := client.Create(ctx, platform.Member{Email: email})
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	if id, _, err := client.LabelsOf(ctx, m.UUID); id != m.ID || err != nil {
		t.Errorf("the member with UUID %q: %q, %v, want %q", m.UUID, id, err, m.ID)
	}
	if longer, err := client.Create(ctx, platform.Member{Email: email + ".uk"}); err != nil {
		t.Errorf("Create: got %+v, %v, want no error", longer, err)
	}
	for _, other := range []string{email, strings.ToLower(email), strings.ToUpper(email)} {
		if got, err := client.FindByEmail(ctx, other); err != nil || got.ID != m.ID {
			t.Errorf("FindByEmail(%q): got %+v, %v, want member %s", other, got, err, m.ID)
		}
	}
	for _, none := range []string{email[:len(email)-1], strings.Replace(email, "%", "x", 1)} {
		if got, err := client.FindByEmail(ctx, none); !errors.Is(err, platform.ErrNotFound) {
			t.Errorf("FindByEmail(%q): got %+v, %v, want %v", none, got, err, platform.ErrNotFound)
		}
	}
}

func TestRealMembersAreFoundByEitherFormOfTheirDomain(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	local := strings.TrimSuffix(unique("forms"), "example.com")
	for _, domain := range []string{"exämple.com", "xn--exmple-cua.com"} {
		m, err := client.Create(ctx, platform.Member{Email: local + domain})
		if err != nil {
			t.Fatalf("client.Create: %v", err)
		}
		if want := local + "xn--exmple-cua.com"; m.Email != want {
			t.Errorf("%s is kept as %s, by which nobody can sign in, want %s", domain, m.Email, want)
		}
		for _, other := range []string{"exämple.com", "EXÄMPLE.com", "xn--exmple-cua.com"} {
			if got, err := client.FindByEmail(ctx, local+other); err != nil || got.ID != m.ID {
				t.Errorf("%s as %s: %+v, %v", domain, other, got, err)
			}
		}
		if err := client.Delete(ctx, m.ID); err != nil {
			t.Errorf("client.Delete: %v", err)
		}
	}
}

func TestRealPlaceholderAddressIsTaken(t *testing.T) {
	client := newClient(t, realConfig(t))
	m, err := client.Create(t.Context(), platform.Member{Email: fmt.Sprintf("c-%d@members.invalid", time.Now().UnixNano())})
	if err != nil || m.Subscribed {
		t.Errorf("Create: got %+v, %v, want a member who is not subscribed, no error", m, err)
	}
}

// A key that Ghost rejects says nothing about the member.
func TestRealKeyIsRejected(t *testing.T) {
	config := realConfig(t)
	for _, key := range []string{testKey, config.AdminKey[:24] + testKey[24:]} {
		stranger := newClient(t, Config{URL: config.URL, AdminKey: key})
		_, err := stranger.Create(t.Context(), platform.Member{Email: unique("stranger")})
		var refusal *platform.Refusal
		var response *Error
		if errors.As(err, &refusal) || errors.Is(err, platform.ErrNotFound) || !errors.As(err, &response) {
			t.Errorf("Create: got %v, want an *Error, no refusal", err)
		}
	}
}

// What a Ghost in trouble answers says nothing about the member. These are the
// faults that the real one cannot be made to show.
func TestFaultsOfGhostAreNoRefusals(t *testing.T) {
	const jwt = `{"errors":[{"message":"Invalid token","type":"BadRequestError","code":"INVALID_JWT"}]}`
	tests := []struct {
		name   string
		status int
		body   string

		// mayArrive is whether the request may still take effect.
		mayArrive bool
	}{
		{"500", 500, `{"errors":[{"type":"InternalServerError"}]}`, true},
		{"500 with the statement that failed", 500, `{"errors":[{"type":"InternalServerError","context":"insert into members values ('jane@example.com') - SQLITE_BUSY"}]}`, true},
		{"503 of a Ghost that starts, or of a proxy", 503, "<html>", false},
		{"429", 429, `{"errors":[{"type":"TooManyRequestsError"}]}`, false},
		{"401", 401, `{"errors":[{"type":"UnauthorizedError"}]}`, false},
		{"403", 403, `{"errors":[{"type":"NoPermissionError"}]}`, false},
		{"400 for the token", 400, jwt, false},
		{"400 of a proxy", 400, "Bad Request", false},
		{"404 of a proxy", 404, "Not Found", false},
		{"422 without a reason", 422, "{}", false},
		{"a redirect", 301, "", true},
		{"200 without a member", 200, `{"members":[]}`, true},
		{"200 that is no JSON", 200, "<html>", true},
		{"200 that is cut off", 200, `{"members":[{"id":"1"`, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				w.Write([]byte(test.body))
			}))
			defer server.Close()
			client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
			_, err := client.Create(t.Context(), platform.Member{Email: "jane@example.com"})
			var refusal *platform.Refusal
			if err == nil || errors.As(err, &refusal) || errors.Is(err, platform.ErrNotFound) {
				t.Errorf("%v, want an error that is about Ghost", err)
			} else if strings.Contains(err.Error(), "jane") {
				t.Errorf("the email is in the error: %v", err)
			} else if got := !errors.Is(err, platform.ErrNoEffect); got != test.mayArrive {
				t.Errorf("may arrive: %t, want %t: %v", got, test.mayArrive, err)
			}
			client.Close()
		})
	}
}

func TestRequestsEndAtTheTimeout(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	client := newClient(t, Config{URL: server.URL, AdminKey: testKey, Timeout: 20 * time.Millisecond})
	if err := client.Delete(t.Context(), "1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Delete: got %v, want %v", err, context.DeadlineExceeded)
	}
}

// Ghost would do it, though nobody waits for the answer any more.
func TestWhatIsTooLateIsNotSent(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	late, cancel := context.WithTimeout(t.Context(), 1900*time.Millisecond)
	defer cancel()
	if err := client.Delete(late, "1"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, platform.ErrNoEffect) || asked.Load() != 0 {
		t.Errorf("Delete with too little time left: got %v after %d requests, want %v and %v after none", err, asked.Load(), context.DeadlineExceeded, platform.ErrNoEffect)
	}
	early, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.Delete(early, "1"); err != nil || asked.Load() != 1 {
		t.Errorf("Delete with time left: got %v after %d requests, want nil after 1", err, asked.Load())
	}
}

func TestNewErrors(t *testing.T) {
	for _, cfg := range []Config{
		{URL: "127.0.0.1:2368", AdminKey: testKey},
		{URL: "ftp://127.0.0.1", AdminKey: testKey},
		{URL: "http://127.0.0.1:2368"},
		{URL: "http://127.0.0.1:2368", AdminKey: "00ff"},
		{URL: "http://127.0.0.1:2368", AdminKey: "id:xyz"},
		{URL: "http://127.0.0.1:2368", AdminKey: "id:"},
		{URL: "http://127.0.0.1:2368", AdminKey: "id:00ff"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		} else if cfg.AdminKey != "" && strings.Contains(err.Error(), cfg.AdminKey) {
			t.Errorf("the key is in the error: %v", err)
		}
	}
}

func TestQuotesInFiltersAreEscaped(t *testing.T) {
	if got := quote(`"o'neil\@x`); got != `'\"o\'neil\@x'` {
		t.Errorf("quote = %v, want `'\\\"o\\'neil\\@x'`", got)
	}
}

// A newsletter that Ghost has archived stands in nobody's way who names none, and is
// refused, as one that Ghost does not have is.
func TestArchivedNewsletter(t *testing.T) {
	client := newClient(t, realConfig(t))
	ctx := t.Context()
	type archivable struct {
		ID     string `json:"id,omitempty"`
		Name   string `json:"name,omitempty"`
		Status string `json:"status,omitempty"`
		Signup bool   `json:"subscribe_on_signup"` // of other tests' members it is none
	}
	type newsletters struct {
		Newsletters []archivable `json:"newsletters"`
	}
	var made newsletters
	name := newsletters{[]archivable{{Name: unique("Old")}}}
	if err := client.memberClient.call(ctx, http.MethodPost, "/newsletters/", nil, name, &made); err != nil {
		t.Fatalf("client.memberClient.call: %v", err)
	}
	old := made.Newsletters[0].ID
	usual, err := client.Create(ctx, platform.Member{Email: unique("usual"), Subscribed: true})
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	both, err := client.Create(ctx, platform.Member{Email: unique("both"), Subscribed: true, Newsletters: append(usual.Newsletters, old)})
	if err != nil || len(both.Newsletters) != 2 {
		t.Fatalf("Create: got %+v, %v, want 2 newsletters", both, err)
	}
	archived := newsletters{[]archivable{{Status: "archived"}}}
	if err := client.memberClient.call(ctx, http.MethodPut, "/newsletters/"+old+"/", nil, archived, nil); err != nil {
		t.Fatalf("client.memberClient.call: %v", err)
	}
	subscribed := &platform.Subscription{Subscribed: true}
	for _, change := range []platform.Change{{Subscription: subscribed}, {Name: new("New"), Subscription: subscribed}} {
		want, err := client.Get(ctx, both.ID)
		if err != nil || len(want.Newsletters) != 1 {
			t.Fatalf("Get: got %+v, %v, want 1 newsletter", want, err)
		}
		if change.Name != nil {
			want.Name = *change.Name
		}
		got, err := client.Update(ctx, both.ID, change)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(platform.Member{}, "UpdatedAt")); diff != "" || err != nil {
			t.Errorf("Update with %+v: %v, member (-want +got):\n%s", change, err, diff)
		}
	}
	before, err := client.Get(ctx, both.ID)
	if err != nil {
		t.Fatalf("client.Get: %v", err)
	}
	const unknown = "0123456789abcdef01234567"
	for _, test := range []struct {
		ids  []string
		want string
	}{
		{[]string{old}, archivedNewsletter},
		{append(usual.Newsletters, old), archivedNewsletter},
		{[]string{unknown}, unknownNewsletter},
		{append(usual.Newsletters, unknown), unknownNewsletter},
		{append(usual.Newsletters, `x'],status:[archived`), unknownNewsletter},
	} {
		var refusal *platform.Refusal
		_, err := client.Create(ctx, platform.Member{Email: unique("none"), Subscribed: true, Newsletters: test.ids})
		if !errors.As(err, &refusal) || refusal.Reason != test.want {
			t.Errorf("create %v: %v, want %q", test.ids, err, test.want)
		}
		_, err = client.Update(ctx, both.ID, platform.Change{Name: new("Other"), Subscription: &platform.Subscription{Subscribed: true, Newsletters: test.ids}})
		if !errors.As(err, &refusal) || refusal.Reason != test.want {
			t.Errorf("update %v: %v, want %q", test.ids, err, test.want)
		}
	}
	after, err := client.Get(ctx, both.ID)
	if diff := cmp.Diff(before, after); diff != "" || err != nil {
		t.Errorf("after refusals: %v %s", err, diff)
	}
	// One ID given twice is one newsletter.
	twice := &platform.Subscription{Subscribed: true, Newsletters: append(usual.Newsletters, usual.Newsletters...)}
	if got, err := client.Update(ctx, both.ID, platform.Change{Subscription: twice}); err != nil || len(got.Newsletters) != 1 {
		t.Errorf("twice: %+v, %v", got, err)
	}
}
