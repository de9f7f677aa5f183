package ghost

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// withAdminDomain answers as Ghost 5.130 and 6.65 do whose admin:url is another host. It counts requests by their host.
func withAdminDomain(isGhost5 bool, folder string, asked map[string]int) http.HandlerFunc {
	const site, admin = "daily.example", "admin.daily.example:8443"
	return func(w http.ResponseWriter, r *http.Request) {
		host := r.Header.Get("X-Forwarded-Host")
		if host == "" {
			host = r.Host
		}
		path, isBelow := strings.CutPrefix(r.URL.Path, folder)
		isAdmin := strings.HasPrefix(path, "/ghost/")
		asked[fmt.Sprint(map[bool]string{true: "admin", false: "readers"}[isAdmin], " at ", map[string]string{site: "site", admin: "admin"}[host])]++
		switch {
		case !isBelow, isAdmin != (host == admin) && (!isAdmin || isGhost5 && path != "/ghost/"):
			http.NotFound(w, r)
		case isAdmin && host != admin:
			http.Redirect(w, r, "https://"+admin+r.URL.Path, http.StatusMovedPermanently)
		case path == "/ghost/api/admin/site/":
			fmt.Fprintf(w, `{"site":{"title":"Daily","url":"https://%s%s/"}}`, site, folder)
		case path == "/ghost/api/admin/config/":
			_, _ = io.WriteString(w, `{"config":{"version":"6.65"}}`)
		case path == memberPath:
			_, _ = io.WriteString(w, `{"uuid":"u1","email":"jane@example.com"}`)
		default:
			http.NotFound(w, r)
		}
	}
}

// A Ghost that serves its admin at a host of its own is asked for each path at the host of that, also where
// nobody wrote it into the configuration, or wrote another, and whichever of its hosts the configuration has.
func TestEachPathIsAskedAtItsHost(t *testing.T) {
	for _, isGhost5 := range []bool{false, true} {
		for _, folder := range []string{"", "/blog"} {
			for _, written := range []string{"", "https://admin.daily.example:8443", "https://old.daily.example"} {
				t.Run(fmt.Sprintf("Ghost 5 %t, in %q, admin_url %q", isGhost5, folder, written), func(t *testing.T) {
					asked := make(map[string]int)
					server := httptest.NewServer(withAdminDomain(isGhost5, folder, asked))
					defer server.Close()
					client := newClient(t, Config{URL: server.URL + folder, AdminURL: written, AdminKey: testKey})
					for range 3 {
						if found, err := client.Examine(t.Context()); err != nil || found.Name != "Ghost 6.65" {
							t.Fatalf("Examine: %v, %v", found, err)
						}
						if reader, err := client.Reader(t.Context(), "ghost-members-ssr=a; ghost-members-ssr.sig=b"); err != nil || reader.UUID != "u1" {
							t.Fatalf("Reader: %v, %v", reader, err)
						}
					}
					if asked["admin at admin"] < 3 || asked["admin at "] > 3 || asked["readers at admin"] > 1 {
						t.Errorf("asked %v, want no more than a search at other hosts", asked)
					}
					location, err := client.Locate(t.Context(), nil)
					if err != nil {
						t.Fatalf("Locate: %v", err)
					}
					got := fmt.Sprint(location.Found, " ", location.Public, " ", location.Admin)
					if diff := cmp.Diff(fmt.Sprintf("%s https://daily.example%[2]s/ https://admin.daily.example:8443%[2]s", server.URL+folder, folder), got); diff != "" {
						t.Errorf("Locate (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// Where the configuration has the admin's own address, readers are asked for at the publication's.
func TestReadersAreAskedForAtTheSite(t *testing.T) {
	asked := make(map[string]int)
	ghost := withAdminDomain(false, "", asked)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Forwarded-Host") == "" {
			r.Host = "admin.daily.example:8443"
		}
		ghost(w, r)
	}))
	defer server.Close()
	client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	for range 3 {
		if reader, err := client.Reader(t.Context(), "ghost-members-ssr=a; ghost-members-ssr.sig=b"); err != nil || reader.UUID != "u1" {
			t.Fatalf("Reader: %v, %v", reader, err)
		}
	}
	if want := map[string]int{"readers at admin": 1, "admin at admin": 1, "readers at site": 3}; cmp.Diff(want, asked) != "" {
		t.Errorf("asked %v, want %v", asked, want)
	}
}

// Whoever takes Ghost's place cannot have the edge ask it again and again.
func TestWhatIsNoGhostIsNotSearchedTwice(t *testing.T) {
	for name, respond := range map[string]http.HandlerFunc{
		"nothing is there": http.NotFound,
		"all of it is elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example"+r.URL.Path, http.StatusFound)
		},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			respond(w, r)
		}))
		client := newClient(t, Config{URL: server.URL, AdminKey: testKey})
		const requests = 20
		for range requests {
			if _, err := client.Examine(t.Context()); err == nil {
				t.Errorf("%s: Examine succeeds", name)
			}
		}
		if asked > requests+3 {
			t.Errorf("%s: %d requests for %d, want at most 3 more", name, asked, requests)
		}
		if _, err := client.Locate(t.Context(), nil); err == nil {
			t.Errorf("%s: Locate succeeds", name)
		} else if elsewhere, ok := errors.AsType[*platform.ElsewhereError](err); !ok || elsewhere.Redirect != nil && elsewhere.Redirect.Host != "elsewhere.example" {
			t.Errorf("%s: Locate: %v", name, err)
		}
		server.Close()
	}
}
