package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// What an editor asks for while Ghost does not answer is taken if Ghost knew them in the last 10
// minutes, and from nobody else: not after a sign-out that Ghost told of, and not for longer.
func TestAuthorizeQueued(t *testing.T) {
	down := errors.New("connection refused")
	for _, test := range []struct {
		name   string
		before func(s *Staff, p *platformtest.Platform, ask func(cookie string) error)
		cookie string
		hangs  bool
		takes  time.Duration
		want   error
	}{
		{name: "known 9 minutes ago", before: func(*Staff, *platformtest.Platform, func(string) error) { time.Sleep(9 * time.Minute) }},
		{name: "it hangs", hangs: true, takes: pressTimeout, before: func(*Staff, *platformtest.Platform, func(string) error) { time.Sleep(time.Minute) }},
		{name: "it hangs, and never knew", cookie: "administrator", hangs: true, takes: pressTimeout, want: ErrStaffUnknown},
		{name: "known 10 minutes ago", before: func(*Staff, *platformtest.Platform, func(string) error) { time.Sleep(10 * time.Minute) }, want: ErrStaffUnknown},
		{name: "never known", cookie: "administrator", want: ErrStaffUnknown},
		{name: "without a session", cookie: "-", want: ErrNotStaff},
		{name: "signed out meanwhile", want: ErrStaffUnknown, before: func(_ *Staff, p *platformtest.Platform, ask func(string) error) {
			time.Sleep(time.Minute)
			p.Break(platform.ErrNotStaff)
			if err := ask("editor"); !errors.Is(err, ErrNotStaff) {
				t.Errorf("after the sign-out: got %v, want %v", err, ErrNotStaff)
			}
		}},
		{name: "of another role", cookie: "author", want: ErrRole, before: func(_ *Staff, _ *platformtest.Platform, ask func(string) error) {
			if err := ask("author"); !errors.Is(err, ErrRole) {
				t.Errorf("an author: got %v, want %v", err, ErrRole)
			}
			time.Sleep(time.Minute)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := platformtest.New()
				s := newStaff(t, p)
				ask := func(cookie string) (platform.Visitor, platform.StaffMember, error) {
					r := httptest.NewRequest(http.MethodPost, "https://news.example.com/ghost/lychgate/desk/events", nil)
					r.Header.Set("Sec-Fetch-Site", "same-origin")
					if cookie != "-" {
						r.Header.Set("Cookie", cookie)
					}
					return s.AuthorizeQueued(t.Context(), r, netip.Addr{}, MayManage)
				}
				if visitor, _, err := ask("editor"); err != nil || visitor.IsRecalled {
					t.Fatalf("while Ghost answers: got %v, recalled: %t; want no error, and false", err, visitor.IsRecalled)
				}
				if test.before != nil {
					test.before(s, p, func(cookie string) error {
						_, _, err := ask(cookie)
						return err
					})
				}
				if test.hangs {
					p.Before = func(context.Context, string) error {
						time.Sleep(10 * time.Second) // as long as Ghost is waited for
						return context.DeadlineExceeded
					}
				} else {
					p.Break(down)
				}
				if test.cookie == "" {
					test.cookie = "editor"
				}
				began := time.Now()
				visitor, member, err := ask(test.cookie)
				if !errors.Is(err, test.want) || (test.want == nil) != (err == nil) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if err == nil && (!visitor.IsRecalled || !member.Permissions.ManageManifests) {
					t.Errorf("got a visitor who is recalled: %t, with %+v; want an editor who is", visitor.IsRecalled, member)
				}
				if took := time.Since(began); took != test.takes {
					t.Errorf("it took %v, want %v", took, test.takes)
				}
				if _, _, err := authorizeGet(t, s, test.cookie); err == nil {
					t.Error("reading: got no error, want one: no recalled session is enough for reading")
				}
			})
		})
	}
}

// However often the pages of an office ask while Ghost is down, what they publish is kept: that
// Ghost does not answer is no failed sign-in.
func TestRecalledHoweverOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := platformtest.New()
		s := newStaff(t, p)
		ask := func() (platform.Visitor, error) {
			r := httptest.NewRequest(http.MethodPost, "https://news.example.com/ghost/lychgate/desk/events", nil)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set("Cookie", "editor")
			visitor, _, err := s.AuthorizeQueued(t.Context(), r, netip.Addr{}, MayManage)
			return visitor, err
		}
		if _, err := ask(); err != nil {
			t.Fatalf("while Ghost answers: %v", err)
		}
		p.Break(errors.New("connection refused"))
		for n := range 100 {
			if visitor, err := ask(); err != nil || !visitor.IsRecalled {
				t.Fatalf("request %d: got %v, recalled: %t, want no error, and true", n, err, visitor.IsRecalled)
			}
		}
	})
}

// authorizeGet asks for a page while the platform does not answer.
func authorizeGet(t *testing.T, s *Staff, cookie string) (platform.Visitor, platform.StaffMember, error) {
	r := httptest.NewRequest(http.MethodGet, "https://news.example.com/ghost/lychgate/desk/events", nil)
	r.Header.Set("Cookie", cookie)
	return s.Authorize(t.Context(), r, netip.Addr{}, MayManage)
}
