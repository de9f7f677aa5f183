package ghost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// signIn begins a session as the owner that e2e/ghost/start makes, and returns
// the cookie.
func signIn(t *testing.T, address, origin string) string {
	t.Helper()
	body := `{"username": "owner@example.com", "password": "four-words-on-a-lychgate"}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/ghost/api/admin/session/", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Origin", origin)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("http.DefaultClient.Do: %v", err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated || len(response.Cookies()) == 0 {
		t.Fatalf("signing in: %s", response.Status)
	}
	cookie := response.Cookies()[0]
	return cookie.Name + "=" + cookie.Value
}

var (
	owner  = platform.StaffMember{Roles: []string{"Owner"}, Permissions: platform.Permissions{UploadThemes: true, ManageManifests: true, Administer: true}}
	editor = platform.StaffMember{Roles: []string{"Editor"}, Permissions: platform.Permissions{ManageManifests: true}}
)

// signedIn is the owner that e2e/ghost/start makes.
var signedIn = platform.StaffMember{Email: "owner@example.com", Roles: owner.Roles, Permissions: owner.Permissions}

// anybody ignores who it is, and their colours.
var anybody = cmpopts.IgnoreFields(platform.StaffMember{}, "ID", "Name", "Scheme")

// A user of Ghost's may do at the edge what the role lets them do, and those who only
// write are known as staff all the same.
func TestRolesDecideWhatStaffMayDo(t *testing.T) {
	var roles string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"users":[{"id":"1","name":"Ada","roles":[%s]}]}`, roles)
	}))
	defer server.Close()
	client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	for _, test := range []struct {
		roles string
		want  platform.StaffMember
	}{
		{`{"name":"Owner"}`, owner},
		{`{"name":"Administrator"}`, platform.StaffMember{Roles: []string{"Administrator"}, Permissions: owner.Permissions}},
		{`{"name":"Editor"}`, editor},
		{`{"name":"Super Editor"}`, platform.StaffMember{Roles: []string{"Super Editor"}, Permissions: editor.Permissions}},
		{`{"name":"Author"}`, platform.StaffMember{Roles: []string{"Author"}}},
		{`{"name":"Contributor"}`, platform.StaffMember{Roles: []string{"Contributor"}}},
		{`{"name":"a role of next year"}`, platform.StaffMember{Roles: []string{"a role of next year"}}},
		{`{"name":"Author"},{"name":"Editor"}`, platform.StaffMember{Roles: []string{"Author", "Editor"}, Permissions: editor.Permissions}},
		{``, platform.StaffMember{}},
	} {
		roles = test.roles
		test.want.ID, test.want.Name, test.want.Scheme = "1", "Ada", "light"
		member, err := client.Staff(t.Context(), platform.Visitor{Cookie: sessionCookie + "=a"})
		if diff := cmp.Diff(test.want, member); diff != "" || err != nil {
			t.Errorf("Staff with %s: %v, (-want +got):\n%s", test.roles, err, diff)
		}
	}
}

// What a proxy before Ghost says of a session counts, however long its page is.
func TestLongPageInsteadOfStaff(t *testing.T) {
	var status int
	page := bytes.Repeat([]byte(" "), maxResponse+1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write(page)
	}))
	defer server.Close()
	client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	for want, statuses := range map[error][]int{
		platform.ErrNotStaff:   {http.StatusUnauthorized, http.StatusForbidden},
		platform.ErrUnanswered: {http.StatusOK, http.StatusBadGateway},
	} {
		for _, status = range statuses {
			if _, err := client.Staff(t.Context(), platform.Visitor{Cookie: sessionCookie + "=a"}); !errors.Is(err, want) {
				t.Errorf("Staff, if Ghost responds %d: %v, want %v", status, err, want)
			}
		}
	}
}

// Only those who are signed in to Ghost are staff, and only from where they
// signed in.
func TestOnlyUsersSignedInAreStaff(t *testing.T) {
	config := realConfig(t)
	client := newClient(t, config)
	cookie := signIn(t, config.URL, config.URL)
	wait.Until(t, func() string { // Ghost keeps a session a moment after it has said so
		if _, err := client.Staff(t.Context(), platform.Visitor{Cookie: cookie, Origin: config.URL}); err != nil {
			return err.Error()
		}
		return ""
	})
	for name, visitor := range map[string]platform.Visitor{
		"from a page": {Cookie: cookie, Referer: config.URL + "/ghost/"},
		"by a script": {Cookie: cookie, Origin: config.URL},
		"with others": {Cookie: "theme=dark; " + cookie, Origin: config.URL},
	} {
		member, err := client.Staff(t.Context(), visitor)
		if diff := cmp.Diff(signedIn, member, anybody); diff != "" || err != nil {
			t.Errorf("%s: %v, staff (-want +got):\n%s", name, err, diff)
		}
	}
	for name, visitor := range map[string]platform.Visitor{
		"nobody":         {Origin: config.URL},
		"a forged one":   {Cookie: strings.Replace(cookie, "s%3A", "s%3Ax", 1), Origin: config.URL},
		"another origin": {Cookie: cookie, Origin: "https://elsewhere.example"},
	} {
		if member, err := client.Staff(t.Context(), visitor); !errors.Is(err, platform.ErrNotStaff) {
			t.Errorf("%s: got %v, %v, want %v", name, member, err, platform.ErrNotStaff)
		}
	}
	away := newClient(t, Config{URL: "http://127.0.0.1:1", AdminKey: testKey})
	if _, err := away.Staff(t.Context(), platform.Visitor{Cookie: cookie}); err == nil || errors.Is(err, platform.ErrNotStaff) || strings.Contains(err.Error(), cookie) {
		t.Errorf("Ghost is away: %v", err)
	}
}

// A token is valid if Ghost takes it.
func TestCheckToken(t *testing.T) {
	config := realConfig(t)
	client := newClient(t, config)
	token, err := client.memberClient.tokens.current()
	if err != nil {
		t.Fatalf("client.memberClient.tokens.current: %v", err)
	}
	if err := client.CheckToken(t.Context(), "Ghost "+token); err != nil {
		t.Errorf("client.CheckToken: %v", err)
	}
	for _, authorization := range []string{"", "Ghost", "Ghost ", "Bearer " + token, "Ghost x", "Ghost " + token + "x", "Ghost " + strings.Repeat("x", 100_000)} {
		if err := client.CheckToken(t.Context(), authorization); !errors.Is(err, platform.ErrNotStaff) {
			t.Errorf("CheckToken(%.30q): got %v, want %v", authorization, err, platform.ErrNotStaff)
		}
	}
}

// Ghost is asked about requests with a session only, and sent no more of them than
// it needs.
func TestStaffIsAskedAboutSessions(t *testing.T) {
	status := http.StatusOK
	var asked []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header)
		w.WriteHeader(status)
		w.Write([]byte(`{"users":[{"roles":[{"name":"Editor"}]}]}`))
	}))
	defer server.Close()
	client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	long := strings.Repeat("x", 20_000)
	for cookie, want := range map[string]string{
		"":                                "",
		"theme=dark; ghost-members-ssr=x": "",
		"ghost-admin-api-session=":        "",
		"ghost-admin-api-session":         "",
		"ghost-admin-api-session=" + long: "",
		"ghost-admin-api-session=a":       "ghost-admin-api-session=a",
		"x=" + long + "; ghost-admin-api-session=a; ghost-admin-api-session=b": "ghost-admin-api-session=a",
	} {
		asked = nil
		member, err := client.Staff(t.Context(), platform.Visitor{Cookie: cookie, Origin: "https://a.example", Referer: long, UserAgent: long})
		if (client.StaffSession(cookie) != "") != (want != "") {
			t.Errorf("%.60s: StaffSession %q", cookie, client.StaffSession(cookie))
		}
		if want == "" {
			if !errors.Is(err, platform.ErrNotStaff) || asked != nil {
				t.Errorf("%.60s: got %v, requests %v, want %v and no request", cookie, err, asked, platform.ErrNotStaff)
			}
			continue
		}
		if diff := cmp.Diff(editor, member, anybody); diff != "" || err != nil || len(asked) != 1 {
			t.Fatalf("%.60s: %v, %d requests, want 1; staff (-want +got):\n%s", cookie, err, len(asked), diff)
		}
		got := []string{asked[0].Get("Cookie"), asked[0].Get("Origin"), asked[0].Get("Referer")}
		if diff := cmp.Diff([]string{want, "https://a.example", ""}, got); diff != "" {
			t.Errorf("%.60s (-want +got):\n%s", cookie, diff)
		}
	}
	for _, test := range []struct {
		status   int
		notStaff bool
	}{{400, true}, {401, true}, {403, true}, {418, true}, {431, true}, {404, false}, {429, false}, {500, false}, {302, false}} {
		status = test.status
		_, err := client.Staff(t.Context(), platform.Visitor{Cookie: "ghost-admin-api-session=a"})
		if err == nil || errors.Is(err, platform.ErrNotStaff) != test.notStaff {
			t.Errorf("status %d: got %v, want an error, ErrNotStaff: %t", test.status, err, test.notStaff)
		}
	}
}

// A session is good at another origin than Ghost's if the edge vouches for the
// request, on any Ghost.
func TestSessionAtAnotherOrigin(t *testing.T) {
	config := realConfig(t)
	client := newClient(t, config)
	location, err := client.Locate(t.Context(), nil)
	if err != nil {
		t.Fatalf("client.Locate: %v", err)
	}
	own := location.Public.Scheme + "://" + location.Public.Host
	const elsewhere = "https://elsewhere.example"
	cookie := signIn(t, config.URL, own)
	wait.Until(t, func() string { // Ghost keeps a session a moment after it has said so
		if _, err := client.Staff(t.Context(), platform.Visitor{Cookie: cookie, Origin: own}); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, visitor := range []platform.Visitor{
		{Cookie: cookie, Origin: elsewhere, SameOrigin: true},
		{Cookie: cookie, Referer: elsewhere + "/ghost/", SameOrigin: true},
		{Cookie: cookie, Origin: elsewhere, Referer: elsewhere + "/ghost/", SameOrigin: true},
	} {
		member, err := client.Staff(t.Context(), visitor)
		if diff := cmp.Diff(signedIn, member, anybody); diff != "" || err != nil {
			t.Errorf("origin %s, referer %s: %v, staff (-want +got):\n%s", visitor.Origin, visitor.Referer, err, diff)
		}
	}
	want := &platform.SessionError{Reason: "Request made from incorrect origin. Expected '" + own + "' received '" + elsewhere + "'."}
	for _, visitor := range []platform.Visitor{
		{Cookie: cookie, Origin: elsewhere},
		{Cookie: cookie, Referer: elsewhere + "/ghost/"},
	} {
		member, err := client.Staff(t.Context(), visitor)
		if diff := cmp.Diff(want.Error(), fmt.Sprint(err)); diff != "" || !errors.Is(err, platform.ErrNotStaff) {
			t.Errorf("origin %s, referer %s: got %v, want an ErrNotStaff (-want +got):\n%s", visitor.Origin, visitor.Referer, member, diff)
		}
	}
}

// Ghost is asked again without the origin only if the edge vouches for the request,
// and the first reason is the one that counts.
func TestAskedWithoutTheOrigin(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Origin")+r.Header.Get("Referer"))
		if r.Header.Get("Cookie") == "ghost-admin-api-session=forged" && r.Header.Get("Origin") == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"errors":[{"type":"BadRequestError","message":"Request made from incorrect origin. Expected 'x' received '%s'."}]}`, r.Header.Get("Origin"))
	}))
	defer server.Close()
	client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	for _, test := range []struct {
		cookie string
		vouch  bool
		want   []string
	}{
		{"a", false, []string{"y"}},
		{"a", true, []string{"y", ""}},
		{"forged", true, []string{"y", ""}},
	} {
		asked = nil
		_, err := client.Staff(t.Context(), platform.Visitor{Cookie: "ghost-admin-api-session=" + test.cookie, Origin: "y", SameOrigin: test.vouch})
		if diff := cmp.Diff(test.want, asked); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", test.cookie, test.vouch, diff)
		}
		session, ok := errors.AsType[*platform.SessionError](err)
		if !ok || session.Reason != "Request made from incorrect origin. Expected 'x' received 'y'." {
			t.Errorf("%s %v: got %v, want a *SessionError that says which origin is expected", test.cookie, test.vouch, err)
		}
	}
}

// However many ask who they are, members do not wait for them. However many ask for
// members, Ghost has no more than so many connections.
func TestStaffHasConnectionsOfItsOwn(t *testing.T) {
	free := make(chan struct{})
	var waiting, members, most atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/users/me/") {
			waiting.Add(1)
			<-free
			w.WriteHeader(http.StatusForbidden)
			return
		}
		for n, old := members.Add(1), most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		defer members.Add(-1)
		runtime.Gosched()
		w.Write([]byte(`{"members":[{"id":"1","email":"jane@example.com"}]}`))
	}))
	defer server.Close()
	client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := client.Staff(context.Background(), platform.Visitor{Cookie: fmt.Sprint(sessionCookie, "=", i)})
			if !errors.Is(err, platform.ErrNotStaff) {
				t.Errorf("client.Staff: %v, want %v", err, platform.ErrNotStaff)
			}
		})
	}
	wait.Until(t, func() string {
		if n := waiting.Load(); n < maxStaffConnections {
			return fmt.Sprintf("%d requests about the staff", n)
		}
		return ""
	})
	for range 200 {
		wg.Go(func() {
			if _, err := client.Get(context.Background(), "1"); err != nil {
				t.Errorf("client.Get: %v", err)
			}
		})
	}
	if _, err := client.Get(t.Context(), "1"); err != nil {
		t.Errorf("client.Get: %v", err)
	}
	if n := waiting.Load(); n != maxStaffConnections {
		t.Errorf("%d requests about the staff at once", n)
	}
	close(free)
	wg.Wait()
	if n := most.Load(); n > maxConnections {
		t.Errorf("%d requests about members at once", n)
	}
}

// A user who has Ghost Admin in dark has it in its preferences, which others write too.
func TestColourSchemeIsReadFromPreferences(t *testing.T) {
	for preferences, want := range map[string]string{
		`{"nightShift":true,"navigation":{}}`: "dark", `{"nightShift":false}`: "light",
		`{"nightShift":"dark"}`: "dark", `{"nightShift":"light"}`: "light", `{"nightShift":"system"}`: "",
		`{"whatsNew":{}}`: "light", "": "light", "null": "light", `{"nightShift":"yes"}`: "light", `{"nightShift":["dark"]}`: "light",
	} {
		if got := schemeIn(preferences); got != want {
			t.Errorf("%s: got %q, want %q", preferences, got, want)
		}
	}
}
