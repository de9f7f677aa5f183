package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

func newStaff(t testing.TB, p platform.Authenticator) *Staff {
	return NewStaff("daily", "Ghost", p, NewAuthLimiter(platformtest.StaffLimiter(t)))
}

// takesASecond delays each call of a platform.
func takesASecond(context.Context, string) error {
	time.Sleep(time.Second)
	return nil
}

// authorize tries a request that manages manifests.
func authorize(t testing.TB, s *Staff, r *http.Request, address netip.Addr) error {
	_, _, err := s.Authorize(t.Context(), r, address, MayManage)
	return err
}

// Where the admin has a host of its own, nobody can sign in at that of the readers, and is told where.
func TestStaffAreToldWhichHostTheirsIs(t *testing.T) {
	p := platformtest.New()
	p.Location.Admin = &url.URL{Scheme: "https", Host: "admin.example.com:8443", Path: "/blog"}
	s := newStaff(t, p)
	for host, want := range map[string]string{
		"news.example.com":       "Ghost's admin is at admin.example.com:8443, so nobody is signed in to it here. Ask for this at that host. If it is not there, the operator writes the same directive into the block of admin.example.com:8443.",
		"admin.example.com":      "Sign in to Ghost's admin on this site first.",
		"ADMIN.example.com:8443": "Sign in to Ghost's admin on this site first.",
	} {
		r := httptest.NewRequest(http.MethodGet, "https://"+host+"/blog/ghost/lychgate/themes", nil)
		if err := authorize(t, s, r, netip.Addr{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", host, err, want)
		}
	}
}

// What the platform said of a session is asked for once in 15 seconds, and what
// it could not say is asked again.
func TestSessionsAreKeptAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := platformtest.New()
		r.Before = takesASecond
		s := newStaff(t, r)
		ask := func(cookie, origin string) error {
			request := httptest.NewRequest(http.MethodGet, "https://news.example.com/ghost/lychgate/themes", nil)
			request.Header.Set("Cookie", cookie)
			if origin != "" {
				request.Header.Set("Origin", origin)
			}
			return authorize(t, s, request, netip.Addr{})
		}
		count := func(of string, want int) {
			t.Helper()
			if got := r.Asked()[of]; got != want {
				t.Errorf("%s: asked %d times, want %d", of, got, want)
			}
		}
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				if err := ask("owner", "https://a"); err != nil {
					t.Errorf("the owner: %v, want no error", err)
				}
			})
		}
		wg.Wait()
		count("owner https://a", 1)
		time.Sleep(sessionTTL - time.Second - time.Nanosecond)
		ask("owner", "https://a")
		count("owner https://a", 1)
		time.Sleep(2 * time.Second)
		ask("owner", "https://a")
		count("owner https://a", 2)

		ask("owner", "https://b")
		count("owner https://b", 1)
		ask("owner", "") // from the address bar
		count("owner https://news.example.com", 1)
		for range 2 {
			if err := ask("stranger", "https://a"); !errors.Is(err, ErrNotStaff) {
				t.Errorf("a stranger: %v, want %v", err, ErrNotStaff)
			}
		}
		count("stranger https://a", 2)

		// Not more are known than there is room for.
		r.Before = nil // so that no time passes, and none is forgotten for its age
		for i := range maxSessions {
			ask("owner", fmt.Sprint("https://", i))
		}
		ask("owner", "https://b")
		count("owner https://b", 2)
		r.Break(errors.New("no answer"))
		if err := ask("owner", "https://new"); !errors.Is(err, ErrStaffUnknown) {
			t.Errorf("while the platform is away: %v, want %v", err, ErrStaffUnknown)
		}
	})
}

// An address whose sessions are not valid has the platform asked 30 times a minute
// and then no longer. A user who is signed in is served meanwhile, and so is an address
// that somebody was signed in at.
func TestSessionsThatAreNotValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := platformtest.New()
		r.Before = takesASecond
		s := newStaff(t, r)
		ask := func(cookie, address string) error {
			request := httptest.NewRequest(http.MethodGet, "https://news.example.com/ghost/lychgate/themes", nil)
			request.Header.Set("Cookie", cookie)
			return authorize(t, s, request, netip.MustParseAddr(address))
		}
		refusals := func(address string) (refused, tooMany int) {
			for i := range 40 {
				err := ask(fmt.Sprint("stranger ", i), address)
				if errors.Is(err, ErrRateLimited) {
					tooMany++
				} else if errors.Is(err, ErrNotStaff) {
					refused++
				}
			}
			return refused, tooMany
		}
		if refused, tooMany := refusals("192.0.2.1"); refused != 30 || tooMany != 10 || len(r.Asked()) != 30 {
			t.Errorf("%d refused, %d too many, %d asked", refused, tooMany, len(r.Asked()))
		}
		if err := ask("owner", "192.0.2.1"); !errors.Is(err, ErrRateLimited) {
			t.Errorf("another session from there: %v, want %v", err, ErrRateLimited)
		}
		for _, address := range []string{"192.0.2.2", "2001:db8::1"} {
			if err := ask("owner", address); err != nil {
				t.Errorf("the owner at %s: %v, want no error", address, err)
			}
			refusals(address)
			time.Sleep(time.Second)
			if err := ask("owner", address); err != nil {
				t.Errorf("the owner at %s, beside a stranger: %v, want no error", address, err)
			}
		}
		time.Sleep(time.Minute)
		if err := ask("owner", "192.0.2.1"); err != nil {
			t.Errorf("the owner a minute later: %v, want no error", err)
		}
	})
}

// Staff may do here what the platform lets them do, whatever it calls their roles.
func TestStaffMayDoWhatThePlatformAllows(t *testing.T) {
	type allowed struct {
		Manage error
		Upload bool
	}
	for cookie, want := range map[string]allowed{
		"owner":    {nil, true},
		"editor":   {nil, false},
		"author":   {ErrRole, false},
		"stranger": {ErrNotStaff, false},
	} {
		s := newStaff(t, platformtest.New())
		r := httptest.NewRequest(http.MethodGet, "https://news.example.com/ghost/lychgate/themes", nil)
		r.Header.Set("Cookie", cookie)
		got := allowed{authorize(t, s, r, netip.Addr{}), s.MayUpload(t.Context(), r, netip.Addr{})}
		if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", cookie, diff)
		}
	}
}

// A page of another site may not even read.
func TestPagesOfOtherSites(t *testing.T) {
	s := newStaff(t, platformtest.New())
	for _, test := range []struct {
		method, fetchSite, mode, dest string
		want                          error
	}{
		{"GET", "cross-site", "", "", errElsewhere},
		{"HEAD", "cross-site", "", "", errElsewhere},
		{"POST", "cross-site", "", "", errElsewhere},
		{"GET", "cross-site", "no-cors", "image", errElsewhere},
		{"GET", "cross-site", "navigate", "iframe", errElsewhere},
		{"POST", "cross-site", "navigate", "document", errElsewhere},
		{"GET", "cross-site", "navigate", "document", ErrNotStaff}, // a link, such as in a mail
		{"GET", "same-origin", "", "", ErrNotStaff},
		{"GET", "none", "", "", ErrNotStaff},
		{"GET", "", "", "", ErrNotStaff},
	} {
		r := httptest.NewRequest(test.method, "https://news.example.com/ghost/lychgate/themes", nil)
		if test.fetchSite != "" {
			r.Header.Set("Sec-Fetch-Site", test.fetchSite)
			r.Header.Set("Sec-Fetch-Mode", test.mode)
			r.Header.Set("Sec-Fetch-Dest", test.dest)
		}
		if err := authorize(t, s, r, netip.Addr{}); !errors.Is(err, test.want) {
			t.Errorf("%s %q: authorize = %v, want error %v", test.method, test.fetchSite, err, test.want)
		}
	}
}

// Headers of which one says that the request comes from here, and the other that it does not,
// are no browser's. They are refused, whatever is asked for.
func TestHeadersThatDisagree(t *testing.T) {
	const here, host = "https://news.example.com", "news.example.com"
	for _, test := range []struct {
		name      string
		fetchSite []string
		origin    []string
		host      string
		want      error
	}{
		{"another origin", []string{"same-origin"}, []string{"https://elsewhere.example"}, host, errElsewhere},
		{"another origin, typed in", []string{"none"}, []string{"https://elsewhere.example"}, host, errElsewhere},
		{"a host below this one", []string{"same-origin"}, []string{"https://x.news.example.com"}, host, errElsewhere},
		{"a host that begins as this one", []string{"same-origin"}, []string{here + ".elsewhere.example"}, host, errElsewhere},
		{"a user that is named as this host", []string{"same-origin"}, []string{here + "@elsewhere.example"}, host, errElsewhere},
		{"no address", []string{"same-origin"}, []string{"https://[news.example.com"}, host, errElsewhere},
		{"a host without a scheme", []string{"same-origin"}, []string{host}, host, errElsewhere},
		{"two origins", []string{"same-origin"}, []string{here, "https://elsewhere.example"}, host, errElsewhere},
		{"two claims", []string{"same-origin", "cross-site"}, []string{here}, host, errElsewhere},
		{"this one", []string{"same-origin"}, []string{here}, host, nil},
		{"this one in capitals", []string{"same-origin"}, []string{"https://News.Example.com"}, host, nil},
		{"another port, behind a proxy", []string{"same-origin"}, []string{here + ":8443"}, host + ":443", nil},
		{"without TLS, behind a proxy", []string{"same-origin"}, []string{"http://news.example.com"}, host, nil},
		{"IPv6", []string{"same-origin"}, []string{"http://[::1]:8443"}, "[::1]:80", nil},
		{"a page that hides where it is", []string{"same-origin"}, []string{"null"}, host, nil},
		{"typed in", []string{"none"}, nil, host, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
				r := httptest.NewRequest(method, here+"/ghost/lychgate/themes", nil)
				r.Host = test.host
				r.Header["Cookie"] = []string{"owner"}
				r.Header["Sec-Fetch-Site"], r.Header["Origin"] = test.fetchSite, test.origin
				asked := platformtest.New()
				if err := authorize(t, newStaff(t, asked), r, netip.Addr{}); !errors.Is(err, test.want) {
					t.Errorf("%s: %v, want %v", method, err, test.want)
				}
				if isAsked := asked.Visitor.Cookie != ""; isAsked != (test.want == nil) {
					t.Errorf("%s: Ghost was asked: %t", method, isAsked)
				}
			}
		})
	}
}

// Ghost's own check of the origin is given up only where ours has certainly passed.
func TestSameOrigin(t *testing.T) {
	const here, other = "https://news.example.com", "https://www.example.com"
	for _, test := range []struct {
		name       string
		method     string
		header     []string
		wantOrigin string
		want       bool
	}{
		{"a page", "GET", []string{"Sec-Fetch-Site", "same-origin", "Referer", here + "/ghost/"}, "", true},
		{"a page that changes something", "POST", []string{"Sec-Fetch-Site", "same-origin", "Origin", here}, here, true},
		{"a page behind a proxy with TLS", "POST", []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://news.example.com:8443"}, "https://news.example.com:8443", true},
		{"the address bar", "GET", []string{"Sec-Fetch-Site", "none"}, here, true},
		{"another host of the site", "GET", []string{"Sec-Fetch-Site", "same-site", "Origin", other}, other, false},
		{"another host of the site, without its origin", "GET", []string{"Sec-Fetch-Site", "same-site"}, here, false},
		{"a link of another host", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Referer", other + "/"}, here, true},
		{"a client that is no browser", "GET", nil, here, true},
		{"one with the origin", "POST", []string{"Origin", here}, here, true},
		{"one with another origin", "GET", []string{"Origin", other}, other, false},
		{"an HTTP page and an old browser", "POST", []string{"Origin", "http://news.example.com"}, "http://news.example.com", false},
		{"a page and an old browser", "GET", []string{"Referer", here + "/ghost/"}, "", false},
		{"an opaque origin", "GET", []string{"Origin", "null"}, "null", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := platformtest.New()
			r := httptest.NewRequest(test.method, here+"/ghost/lychgate/themes", nil)
			r.Header.Set("Cookie", "owner")
			for i := 0; i < len(test.header); i += 2 {
				r.Header.Set(test.header[i], test.header[i+1])
			}
			err := authorize(t, newStaff(t, asked), r, netip.Addr{})
			got := asked.Visitor
			if err != nil || got.Origin != test.wantOrigin || got.SameOrigin != test.want {
				t.Errorf("authorize = %+v, %v, want no error, origin %v, sameOrigin %v", got, err, test.wantOrigin, test.want)
			}
		})
	}
}

// What Ghost says of the session's origin is said to the visitor.
func TestReasonOfSession(t *testing.T) {
	asked := platformtest.New()
	asked.Break(&platform.SessionError{Reason: "Request made from incorrect origin. Expected 'https://a.example' received 'https://b.example'."})
	r := httptest.NewRequest(http.MethodGet, "https://b.example/ghost/lychgate/themes", nil)
	r.Header.Set("Cookie", "owner")
	err := authorize(t, newStaff(t, asked), r, netip.Addr{})
	const want = "Ghost refuses this session: Request made from incorrect origin. Expected 'https://a.example' received 'https://b.example'. Sign in to Ghost's admin at the expected origin."
	if got := FailureOf(err); got.Message != want || got.Status != http.StatusUnauthorized || got.Outcome != Forbidden {
		t.Errorf("got %+v, want 401, forbidden and: %s", got, want)
	}
}

// Sessions that come at once are no more than those that come in turn.
func TestManySessionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := platformtest.New()
		r.Before = takesASecond
		s := newStaff(t, r)
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				request := httptest.NewRequest(http.MethodGet, "https://news.example.com/ghost/lychgate/themes", nil)
				if i%2 == 0 {
					request.Header.Set("Authorization", fmt.Sprint("made up ", i))
				} else {
					request.Header.Set("Cookie", fmt.Sprint("made up ", i))
				}
				s.MayUpload(t.Context(), request, netip.Addr{})
			})
		}
		wg.Wait()
		if n := len(r.Asked()); n != 30 {
			t.Errorf("asked about %d", n)
		}
	})
}

// An address that sends many valid credentials at once, as after a start of the edge, is
// served, and its failures are few as before.
func TestValidCredentialsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewAuthLimiter(platformtest.StaffLimiter(t))
		address := netip.MustParseAddr("192.0.2.1")
		var wg sync.WaitGroup
		for range maxQueue {
			wg.Go(func() {
				attempt, wait := s.Begin(t.Context(), "daily", address)
				defer attempt.End()
				if wait > 0 {
					t.Errorf("it waits for %s", wait)
				}
				time.Sleep(time.Second)
				attempt.Succeed()
			})
		}
		wg.Wait()
		if n := len(s.queues); n > 0 {
			t.Errorf("%d queues are left", n)
		}
		failed := 0
		for ; failed < 100; failed++ {
			attempt, _ := s.Begin(t.Context(), "daily", address)
			if wait := attempt.Fail(t.Context()); wait > 0 {
				break
			}
		}
		if failed != 29 {
			t.Errorf("%d failures after it, want 29", failed)
		}
	})
}

// A stranger who sends credentials and lets their check hang keeps no other of its address waiting for
// more than two seconds, and no more than a hundred wait.
func TestHangingCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewAuthLimiter(platformtest.StaffLimiter(t))
		address := netip.MustParseAddr("192.0.2.1")
		hanging, _ := s.Begin(t.Context(), "daily", address)
		begun := time.Now()
		var mu sync.Mutex
		waits := make(map[time.Duration]int)
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				attempt, _ := s.Begin(t.Context(), "daily", address)
				defer attempt.End()
				mu.Lock()
				defer mu.Unlock()
				waits[time.Since(begun)]++
			})
		}
		wg.Wait()
		hanging.End()
		if diff := cmp.Diff(map[time.Duration]int{0: 1000 - maxQueue + 1, queueWait: maxQueue - 1}, waits); diff != "" {
			t.Errorf("requests by the time that they wait (-want +got):\n%s", diff)
		}
		if n := len(s.queues); n > 0 {
			t.Errorf("%d queues are left", n)
		}
	})
}

// Which addresses sent valid credentials is remembered for 24 hours, for each site,
// of so many.
func TestAuthLimiterRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewAuthLimiter(platformtest.StaffLimiter(t))
		address := netip.MustParseAddr("192.0.2.1")
		tries := func(site string) (n int) {
			for n < 100 {
				attempt, wait := s.Begin(t.Context(), site, address)
				if wait > 0 || attempt.Fail(t.Context()) > 0 && !attempt.counted {
					break
				}
				n++
			}
			return n
		}
		attempt, _ := s.Begin(t.Context(), "daily", address)
		attempt.Succeed()
		time.Sleep(validTTL - time.Second)
		if n := tries("weekly"); n != 30 {
			t.Errorf("%d tries at another site", n)
		}
		if _, wait := s.Begin(t.Context(), "daily", address); wait > 0 {
			t.Errorf("the address waits for %s", wait)
		}
		time.Sleep(time.Second)
		if _, wait := s.Begin(t.Context(), "daily", address); wait == 0 {
			t.Error("the address waits for 0 s, want longer: a valid session is remembered for 24 hours")
		}
		for i := range 2 * maxValid {
			s.trust(sender{"daily", ratelimit.AddrKey(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))})
		}
		if n := len(s.valid["daily"]); n < maxValid*9/10 || n > maxValid || n != s.remembered {
			t.Errorf("%d are remembered, and %d counted", n, s.remembered)
		}
	})
}

// Whoever sends one valid session of a site from very many addresses pushes out nobody of another site, who
// would share a stranger's rate limit then.
func TestAuthLimiterKeepsAShareForEachSite(t *testing.T) {
	s := NewAuthLimiter(platformtest.StaffLimiter(t))
	addressOf := func(i int) ratelimit.Key {
		return ratelimit.AddrKey(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	const others = 100
	for i := range others {
		s.trust(sender{fmt.Sprint("site", i), addressOf(i)})
	}
	for i := range 4 * maxValid {
		s.trust(sender{"hostile", addressOf(i)})
	}
	for i := range others {
		if !s.trusts(sender{fmt.Sprint("site", i), addressOf(i)}) {
			t.Errorf("the owner of site %d is not remembered any more", i)
		}
	}
	for i := range 2 * maxValid { // sites of one address each
		s.trust(sender{fmt.Sprint("another", i), addressOf(i)})
	}
	if s.remembered > maxValid || len(s.valid) > maxValid {
		t.Errorf("%d addresses of %d sites are remembered, want at most %d", s.remembered, len(s.valid), maxValid)
	}
}
