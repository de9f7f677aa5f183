package ghost

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Nothing of a reader's cookies but the member's session reaches Ghost, and nobody is asked
// about what is none.
func TestReaderSession(t *testing.T) {
	const both = "ghost-members-ssr=jane; ghost-members-ssr.sig=abc"
	long := strings.Repeat("x", 1100)
	for cookie, want := range map[string]string{
		"":   "",
		both: both,
		"ghost-members-ssr.sig=abc;ghost-members-ssr=jane":                                            both,
		"a=b; ghost-members-ssr=jane; ghost-admin-api-session=secret; ghost-members-ssr.sig=abc; c=d": both,
		"ghost-members-ssr=jane":                        "",
		"ghost-members-ssr.sig=abc":                     "",
		"ghost-members-ssr=; ghost-members-ssr.sig=abc": "",
		"ghost-members-ssr=jane; ghost-members-ssr=john; ghost-members-ssr.sig=abc; ghost-members-ssr.sig=def": both,
		"ghost-members-ssr=" + long + "; ghost-members-ssr.sig=abc":                                            "",
		"GHOST-MEMBERS-SSR=jane; ghost-members-ssr.sig=abc":                                                    "",
		"ghost-members-ssr=a=b; ghost-members-ssr.sig=abc":                                                     "ghost-members-ssr=a=b; ghost-members-ssr.sig=abc",
		strings.Repeat("ghost-members-ssr=x;", 5000):                                                           "",
	} {
		if got := (*readerClient)(nil).ReaderSession(cookie); got != want {
			t.Errorf("%.60q: %q, want %q", cookie, got, want)
		}
	}
}

// What a Ghost says of a session is who somebody is, nobody, or unknown: never somebody else.
func TestSessionsTellWhoAReaderIs(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   platform.Reader
		fails  bool
	}{
		"a free member":              {200, `{"uuid":"u1","email":"jane@example.com","name":"Jane","paid":false,"id":"x"}`, platform.Reader{UUID: "u1", Email: "jane@example.com", Name: "Jane"}, false},
		"since a while":              {200, `{"uuid":"u1","email":"jane@example.com","created_at":"2031-05-01T10:11:12.000Z"}`, platform.Reader{UUID: "u1", Email: "jane@example.com", Since: time.Date(2031, 5, 1, 10, 11, 12, 0, time.UTC)}, false},
		"a paid member":              {200, `{"uuid":"u1","email":"jane@example.com","name":null,"paid":true}`, platform.Reader{UUID: "u1", Email: "jane@example.com", IsPaid: true}, false},
		"a session that has ended":   {204, ``, platform.Reader{}, false},
		"a member who was deleted":   {200, `null`, platform.Reader{}, false},
		"no member":                  {200, `{}`, platform.Reader{}, true},
		"a list":                     {200, `[]`, platform.Reader{}, true},
		"no JSON":                    {200, `<html>`, platform.Reader{}, true},
		"nothing":                    {200, ``, platform.Reader{}, true},
		"a UUID that is none":        {200, `{"uuid":"` + strings.Repeat("u", 65) + `"}`, platform.Reader{}, true},
		"another type":               {200, `{"uuid":1}`, platform.Reader{}, true},
		"a redirect":                 {302, ``, platform.Reader{}, true},
		"not found":                  {404, ``, platform.Reader{}, true},
		"too many":                   {429, ``, platform.Reader{}, true},
		"broken":                     {500, `{"errors":[{"message":"x"}]}`, platform.Reader{}, true},
		"a member of many megabytes": {200, `{"uuid":"u1","email":"` + strings.Repeat("x", 1<<20) + `"}`, platform.Reader{}, true},
	} {
		var asked http.Header
		path := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, membersAPI) { // it is asked where it is
				http.NotFound(w, r)
				return
			}
			asked, path = r.Header, r.URL.Path
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		client, err := New(Config{URL: server.URL + "/blog", AdminKey: "6748592f4b9b7700010f6564:" + strings.Repeat("ab", 32)})
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		got, err := client.Reader(t.Context(), "ghost-members-ssr=jane; ghost-members-ssr.sig=abc")
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.fails {
			t.Errorf("%s: %v, want it to fail: %t, want -, got +: %s", name, err, c.fails, diff)
		}
		if path != "/blog/members/api/member/" || asked.Get("Authorization") != "" || asked.Get("Cookie") != "ghost-members-ssr=jane; ghost-members-ssr.sig=abc" {
			t.Errorf("%s: asked %s with %v, want the session and no key", name, path, asked)
		}
		_ = client.Close()
		server.Close()
	}
}

// Edges that give members a new label at the same moment make it once, and each member gets it.
func TestLabelAtOnce(t *testing.T) {
	client := newClient(t, realConfig(t))
	name := unique("At once")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			m, err := client.Create(t.Context(), platform.Member{Email: unique("at-once"), Labels: []string{"Staff's"}})
			if err != nil {
				t.Errorf("client.Create: %v", err)
				return
			}
			defer client.Delete(context.WithoutCancel(t.Context()), m.ID)
			if err := client.AddLabel(t.Context(), m.ID, name); err != nil {
				t.Errorf("client.AddLabel: %v", err)
			}
			now, err := client.Get(t.Context(), m.ID)
			if diff := cmp.Diff([]string{name, "Staff's"}, now.Labels, cmpopts.SortSlices(strings.Compare)); err != nil || diff != "" {
				t.Errorf("%v, the labels, want -, got +: %s", err, diff)
			}
			if err := client.RemoveLabel(t.Context(), m.ID, name); err != nil {
				t.Errorf("client.RemoveLabel: %v", err)
			}
			if now, err = client.Get(t.Context(), m.ID); err != nil || len(now.Labels) != 1 {
				t.Errorf("%v, the labels %q, want what staff gave", err, now.Labels)
			}
		})
	}
	wg.Wait()
}

// A mail is asked for as a page of the publication would, for the reader's own address, and
// whatever Ghost answers is what the reader is told.
func TestSendLink(t *testing.T) {
	type response struct {
		status int
		body   string
	}
	sender := netip.MustParseAddr("192.0.2.1")
	refused := response{400, `{"errors":[{"message":"This site is invite-only","type":"BadRequestError"}]}`}
	for name, c := range map[string]struct {
		token     response
		mails     []response
		maySignUp bool
		want      []string // kinds of mail that are asked for
		err       error    // nil for another than the named ones, if fails
		fails     bool
	}{
		"a guest":                                 {response{200, "t"}, []response{{201, "Created."}}, true, []string{"signup"}, nil, false},
		"where members pay":                       {response{200, "t"}, []response{{201, "{}"}}, false, []string{"signin"}, nil, false},
		"a member, by invitation":                 {response{200, "t"}, []response{refused, {201, "Created."}}, true, []string{"signup", "signin"}, nil, false},
		"nobody, by invitation":                   {response{200, "t"}, []response{refused, refused}, true, []string{"signup", "signin"}, platform.ErrNoReader, true},
		"nobody, where members pay":               {response{200, "t"}, []response{refused}, false, []string{"signin"}, platform.ErrNoReader, true},
		"too many":                                {response{200, "t"}, []response{{429, `{"errors":[{}]}`}}, true, []string{"signup"}, platform.ErrTooManyMails, true},
		"a mail server that is away":              {response{200, "t"}, []response{{500, `{"errors":[{"message":"x"}]}`}}, true, []string{"signup"}, nil, true},
		"an address that the mail server refuses": {response{200, "t"}, []response{{500, `{"errors":[{"type":"EmailError","message":"Failed to send email. Reason: 550 <Jane@example.com>: user jane unknown"}]}`}}, true, []string{"signup"}, nil, true},
		"an address that Ghost refuses":           {response{200, "t"}, []response{{422, `{"errors":[{"type":"ValidationError","message":"x","context":"jane@example.com is no email"}]}`}}, true, []string{"signup"}, nil, true},
		"a redirect":                              {response{200, "t"}, []response{{301, ""}}, true, []string{"signup"}, nil, true},
		"no token":                                {response{404, ""}, nil, true, nil, nil, true},
		"a token of many megabytes":               {response{200, strings.Repeat("x", 1<<20)}, nil, true, nil, nil, true},
	} {
		var kinds []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got := c.token
			if r.Method == http.MethodPost {
				var body map[string]any
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Errorf("%s: reading the request: %v", name, err)
				}
				got = c.mails[len(kinds)]
				kinds = append(kinds, fmt.Sprint(body["emailType"]))
				delete(body, "emailType")
				want := map[string]any{"email": "jane@example.com", "name": "Jane", "redirect": "https://news.example.com/party/?a=b", "integrityToken": body["integrityToken"], "newsletters": []any{map[string]any{"name": "Weekly"}}}
				if token, _ := body["integrityToken"].(string); !cmp.Equal(want, body) || len(token) > maxReaderResponse {
					t.Errorf("%s: sent %v, want %v", name, body, want)
				}
				if r.Header.Get("X-Forwarded-For") != "192.0.2.1" || r.Header.Get("Authorization") != "" {
					t.Errorf("%s: sent %v, want the reader's address and no key", name, r.Header)
				}
			}
			w.WriteHeader(got.status)
			_, _ = w.Write([]byte(got.body))
		}))
		client, err := New(Config{URL: server.URL, AdminKey: "6748592f4b9b7700010f6564:" + strings.Repeat("ab", 32)})
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		isSent, err := client.SendLink(t.Context(), platform.SignInLink{Email: "jane@example.com", Name: "Jane", Page: "https://news.example.com/party/?a=b", MaySignUp: c.maySignUp, Sender: sender, Newsletters: []string{"Weekly"}})
		if (err != nil) != c.fails || c.err != nil && !errors.Is(err, c.err) || c.err == nil && (errors.Is(err, platform.ErrNoReader) || errors.Is(err, platform.ErrTooManyMails)) {
			t.Errorf("%s: %v, want %v, and that it fails: %t", name, err, c.err, c.fails)
		}
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "jane") {
			t.Errorf("%s: the error is %q, want no personal data: it is logged", name, err)
		}
		if want := !c.fails && len(kinds) == 1 && kinds[0] == "signup"; isSent != want {
			t.Errorf("%s: sent for sure %t, want %t", name, isSent, want)
		}
		if diff := cmp.Diff(c.want, kinds); diff != "" {
			t.Errorf("%s: kinds of mail, want -, got +: %s", name, diff)
		}
		if err := client.Close(); err != nil {
			t.Errorf("client.Close: %v", err)
		}
		server.Close()
	}
}

// A mailed link that Ghost does not take any more, or after which it welcomes new members, leads to the page that it is for,
// on this site. All else that Ghost says stays.
func TestLinkPage(t *testing.T) {
	const site, page = "https://news.example.com/", "https://news.example.com/party/?lychgate-registration=t"
	header := func(location string, cookies ...string) http.Header {
		return http.Header{"Location": {location}, "Set-Cookie": cookies}
	}
	const session = "ghost-members-ssr=jane; path=/; httponly"
	for name, c := range map[string]struct {
		link, to string
		response http.Header
		want     string
	}{
		"used before":              {"/members/", page, header("/?action=signup&success=false"), "/party/?lychgate-registration=t"},
		"in a subdirectory":        {"/blog/members/", "https://news.example.com/blog/party/", header("/blog/?action=signin&success=false"), "/blog/party/"},
		"a welcome page":           {"/members/", page, header(site+"welcome/?success=true&action=signup", session), "/party/?lychgate-registration=t"},
		"a welcome page elsewhere": {"/members/", page, header("https://example.org/", "a=b", session), "/party/?lychgate-registration=t"},
		"as it should":             {"/members/", page, header(page+"&action=signup&success=true", session), ""},
		"a private site":           {"/members/", page, header("/private/?r=%2Fmembers%2F"), ""},
		"another redirect":         {"/members/", page, header("https://www.example.com/members/"), ""},
		"another page":             {"/about/", page, header("/?success=false"), ""},
		"nowhere":                  {"/members/", "", header("/?success=false"), ""},
		"another server":           {"/members/", "https://evil.example/party/", header("/?success=false"), "/party/"},
		"a server for a path":      {"/members/", "https://evil.example//evil.example/", header("/?success=false"), ""},
		"a scheme":                 {"/members/", "javascript:alert(1)", header("/?success=false"), ""},
		"no address":               {"/members/", "https://[", header("/?success=false"), ""},
		"no redirect":              {"/members/", page, header("https://["), ""},
	} {
		link := &url.URL{Path: c.link, RawQuery: url.Values{"token": {"x"}, "action": {"signup"}, "r": {c.to}}.Encode()}
		if got := (*readerClient)(nil).LinkPage(link, c.response); got != c.want {
			t.Errorf("%s: leads to %q, want %q", name, got, c.want)
		}
	}
}

// A guest is offered the newsletters that a free member can get, as Ghost has them, and leaves all of them by their
// session alone.
func TestNewsletters(t *testing.T) {
	client := newClient(t, realConfig(t))
	got, err := client.Newsletters(t.Context())
	if err != nil || len(got.Names) == 0 || !got.AreDefault {
		t.Errorf("%+v, %v; want the one that Ghost has at first, by default", got, err)
	}
	if err := client.LeaveNewsletters(t.Context(), "ghost-members-ssr=nobody; ghost-members-ssr.sig=x"); !errors.Is(err, errNobody) {
		t.Errorf("nobody leaves: %v, want %v", err, errNobody)
	}
}

// Only what may change is tried again.
func TestLeaveNewsletters(t *testing.T) {
	for status, want := range map[int]bool{403: true, 404: true, 422: true, 429: false, 500: false, 502: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		err := newClient(t, Config{URL: server.URL, AdminKey: testKey}).LeaveNewsletters(t.Context(), "a session")
		if err == nil || errors.Is(err, platform.ErrNewslettersStay) != want {
			t.Errorf("%d: %v, want that it stays so: %t", status, err, want)
		}
		server.Close()
	}
}

// Newsletters that are for paying members are not offered.
func TestNewslettersOfFreeMembers(t *testing.T) {
	for body, want := range map[string]platform.Newsletters{
		`{"newsletters":[]}`: {},
		`{"newsletters":[{"name":"Pro","visibility":"paid","subscribe_on_signup":true}]}`:                                                                      {},
		`{"newsletters":[{"name":"Pro","visibility":"paid","subscribe_on_signup":true},{"name":"Weekly","visibility":"members","subscribe_on_signup":false}]}`: {Names: []string{"Weekly"}},
		`{"newsletters":[{"name":"Weekly","visibility":"members"},{"name":"Daily","visibility":"members","subscribe_on_signup":true}]}`:                        {Names: []string{"Weekly", "Daily"}, AreDefault: true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		got, err := newClient(t, Config{URL: server.URL, AdminKey: testKey}).Newsletters(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, want -, got +: %s", body, err, diff)
		}
		server.Close()
	}
}

// A reader who asks for a mail while Ghost hangs is told within 3 seconds that there is none. A slow mail server is waited for.
func TestMailsOfAGhostThatHangs(t *testing.T) {
	for name, c := range map[string]struct {
		token, mail time.Duration // that Ghost takes
		want        time.Duration
		err         error
	}{
		"it hangs":           {time.Minute, 0, tokenTimeout, errHangs},
		"a slow mail server": {0, 8 * time.Second, 8 * time.Second, nil},
		"one that hangs":     {0, time.Minute, staffTimeout, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, err := New(Config{URL: "http://ghost.example", AdminKey: testKey})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			client.mails.http.Transport = slowGhost{c.token, c.mail}
			began := time.Now()
			_, err = client.SendLink(t.Context(), platform.SignInLink{Email: "jane@example.com", MaySignUp: true})
			if took := time.Since(began); !errors.Is(err, c.err) || took != c.want {
				t.Errorf("%s: %v after %v, want %v after %v", name, err, took, c.err, c.want)
			}
		})
	}
}

// slowGhost takes its time for a token, and for a mail.
type slowGhost struct{ token, mail time.Duration }

func (g slowGhost) RoundTrip(r *http.Request) (*http.Response, error) {
	takes, status := g.token, http.StatusOK
	if r.Method == http.MethodPost {
		takes, status = g.mail, http.StatusCreated
	}
	select {
	case <-time.After(takes):
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("t")), Request: r}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// Sites have different keys for links, and nobody learns the platform's from them.
func TestLinkKey(t *testing.T) {
	keys := make(map[string]bool)
	for _, secret := range []string{"ab", "cd"} {
		client, err := New(Config{URL: "http://127.0.0.1:2368", AdminKey: "6748592f4b9b7700010f6564:" + strings.Repeat(secret, 32)})
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		keys[hex.EncodeToString(client.LinkKey())] = true
	}
	if len(keys) != 2 || keys[strings.Repeat("ab", 32)] {
		t.Errorf("keys %v, want two, neither the secret", keys)
	}
}
