package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// slowReaders is a platform that takes a while for each question about readers, and hangs for ten seconds.
type slowReaders struct {
	platform.ReaderHost
	takes time.Duration
}

func (*slowReaders) LinkKey() []byte                      { return []byte("secret") }
func (*slowReaders) ReaderSession(cookie string) string   { return cookie }
func (*slowReaders) AccessSession(string) (access string) { return "" }

func (s *slowReaders) Privacy(ctx context.Context) (platform.Privacy, error) {
	return platform.Privacy{}, s.wait(ctx)
}

func (s *slowReaders) Reader(ctx context.Context, _ string) (platform.Reader, error) {
	return platform.Reader{UUID: "jane"}, s.wait(ctx)
}

func (s *slowReaders) wait(ctx context.Context) error {
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A reader who presses a button while Ghost hangs is told within 3 seconds, and known at once when they press again and
// Ghost has answered meanwhile. A small Ghost that takes 2 seconds is waited for.
func TestReadersWhoPress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowReaders{}
		s := NewReaders("daily", "Ghost", p, NewAuthLimiter(platformtest.StaffLimiter(t)), NewPublications())
		press := func(cookie string) string {
			r := httptest.NewRequest(http.MethodPut, "https://news.example.com/ghost/lychgate/events/choir/registration", nil)
			r.Header.Set("Cookie", cookie)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			began, address := time.Now(), netip.MustParseAddr("192.0.2.1")
			_, err := s.Admit(t.Context(), r, address, "")
			var reader platform.Reader
			if err == nil {
				reader, err = s.Reader(t.Context(), r, address)
			}
			took := time.Since(began)
			if err != nil {
				failure := FailureOf(err)
				return fmt.Sprint(took, " ", failure.Status, " ", failure.Wait)
			}
			return fmt.Sprint(took, " ", reader.UUID)
		}
		got := []string{press("first")}
		time.Sleep(time.Minute)
		p.takes = 10 * time.Second
		got = append(got, press("second"))
		time.Sleep(10 * time.Second)
		got = append(got, press("second"))
		time.Sleep(time.Minute)
		p.takes = 1900 * time.Millisecond
		got = append(got, press("third"), press("fourth"))
		if diff := cmp.Diff([]string{"0s jane", "3s 503 5s", "0s jane", "2.9s jane", "1.9s jane"}, got); diff != "" {
			t.Errorf("how long each press took, the reader or the status, and when to press again (-want +got): %s", diff)
		}
		time.Sleep(time.Minute)
	})
}
