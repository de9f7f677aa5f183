package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lychgate/caddy-lychgate/platform"
)

// room counts how often it is asked, and by whom.
type room struct {
	mu    sync.Mutex
	asked map[string]int
	away  bool
}

func (r *room) Staff(_ context.Context, visitor platform.Visitor) ([]string, error) {
	time.Sleep(time.Second) // of a synctest bubble
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[visitor.Cookie+" "+visitor.Origin]++
	switch {
	case r.away:
		return nil, errors.New("no answer")
	case visitor.Cookie == "owner":
		return []string{"Owner"}, nil
	}
	return nil, platform.ErrNotStaff
}

// What the platform said of a session is asked for once in 15 seconds, and what
// it could not say is asked again.
func TestSessionsAreKeptAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{asked: map[string]int{}}
		s := NewStaff(r)
		ask := func(cookie, origin string) error {
			request := httptest.NewRequest(http.MethodGet, "https://news.example.com/ghost/lychgate/themes", nil)
			request.Header.Set("Cookie", cookie)
			if origin != "" {
				request.Header.Set("Origin", origin)
			}
			return s.authorize(t.Context(), request)
		}
		count := func(of string, want int) {
			t.Helper()
			if got := r.asked[of]; got != want {
				t.Errorf("%s: asked %d times, want %d", of, got, want)
			}
		}
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				if err := ask("owner", "https://a"); err != nil {
					t.Error(err)
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
			if err := ask("stranger", "https://a"); !errors.Is(err, errNotStaff) {
				t.Error(err)
			}
		}
		count("stranger https://a", 2)

		// Not more are known than there is room for.
		for i := range maxVisitors {
			ask("owner", fmt.Sprint("https://", i))
		}
		if n := len(s.known); n > maxVisitors {
			t.Errorf("%d are known", n)
		}
		r.away = true
		if err := ask("owner", "https://new"); !errors.Is(err, errNobodySays) {
			t.Error(err)
		}
	})
}
