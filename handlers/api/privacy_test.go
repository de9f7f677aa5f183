package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// closing is a platform whose publication becomes private. It takes one password.
type closing struct {
	platform.ReaderHost
	isPrivate, isAway bool
	privacies         atomic.Int32 // questions
	accesses          atomic.Int32
}

func (c *closing) Privacy(ctx context.Context) (platform.Privacy, error) {
	c.privacies.Add(1)
	if c.isAway {
		<-ctx.Done()
		return platform.Privacy{}, ctx.Err()
	}
	return platform.Privacy{IsPrivate: c.isPrivate}, nil
}

func (*closing) LinkKey() []byte { return []byte("secret") }

func (*closing) AccessSession(cookie string) string { return cookie }

func (c *closing) HasAccess(context.Context, string) (bool, error) {
	c.accesses.Add(1)
	return false, nil
}

// Editors who make their publication private have its events hidden within a minute, and it takes few questions. While
// the platform hangs, it counts what it said last.
func TestPrivacyIsKnownWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(closing)
		privacies := NewPublications()
		s := NewReaders("daily", "Ghost", c, NewAuthLimiter(platformtest.StaffLimiter(t)), privacies)
		admit := func(cookie string) error {
			r := httptest.NewRequest(http.MethodGet, "https://news.example.com/ghost/lychgate/events", nil)
			r.Header.Set("Cookie", cookie)
			_, err := s.Admit(t.Context(), r, netip.MustParseAddr("192.0.2.1"), "")
			return err
		}
		for range 100 {
			if err := admit(""); err != nil {
				t.Fatalf("public: %v", err)
			}
		}
		if n := c.privacies.Load(); n != 1 {
			t.Errorf("asked %d times for 100 requests, want 1", n)
		}
		c.isPrivate = true
		time.Sleep(time.Minute)
		if err := admit(""); !errors.Is(err, ErrPrivate) {
			t.Errorf("a minute after it became private: %v, want %v", err, ErrPrivate)
		}
		c.isAway, c.isPrivate = true, false
		time.Sleep(time.Hour)
		before := c.privacies.Load()
		for range 100 {
			if err := admit(""); !errors.Is(err, ErrPrivate) {
				t.Errorf("while the platform hangs: %v, want %v", err, ErrPrivate)
			}
		}
		if n := c.privacies.Load() - before; n != 1 {
			t.Errorf("asked %d times for 100 requests while it hangs, want 1", n)
		}
		s = NewReaders("daily", "Ghost", c, NewAuthLimiter(platformtest.StaffLimiter(t)), privacies)
		if err := admit(""); !errors.Is(err, ErrPrivate) {
			t.Errorf("after a reload while the platform hangs: %v, want %v", err, ErrPrivate)
		}
		for i := range 1000 { // a stranger guesses
			_ = admit("guess " + string(rune('a'+i%26)) + time.Duration(i).String())
		}
		if n := c.accesses.Load(); n > 30 {
			t.Errorf("a stranger has the platform asked %d times, want at most 30", n)
		}
	})
}
