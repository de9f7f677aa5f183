package api

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// late is a body before which something happens.
type late struct {
	io.Reader
	before func()
}

func (b *late) Read(p []byte) (int, error) {
	if b.before != nil {
		b.before()
		b.before = nil
	}
	return b.Reader.Read(p)
}

// Who signs out while their body arrives is not admitted, whatever it is for. Who does not is, also if the platform no
// longer answers by then and what they ask for is brought to it later.
func TestAdmitAsksAgainOnceTheBodyIsHere(t *testing.T) {
	for _, test := range []struct {
		name         string
		meanwhile    func(*platformtest.Platform)
		want, queued error
	}{
		{"it arrives slowly", func(*platformtest.Platform) {}, nil, nil},
		{"they sign out", func(p *platformtest.Platform) { p.Break(platform.ErrNotStaff) }, ErrNotStaff, ErrNotStaff},
		{"Ghost goes away", func(p *platformtest.Platform) { p.Break(errors.New("connection refused")) }, ErrStaffUnknown, nil},
	} {
		for isQueued, want := range map[bool]error{false: test.want, true: test.queued} {
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := platformtest.New()
					s := newStaff(t, p)
					r := httptest.NewRequest(http.MethodPost, "https://news.example.com/ghost/lychgate/desk/events", &late{strings.NewReader("{}"), func() {
						time.Sleep(20 * time.Second)
						test.meanwhile(p)
					}})
					r.Header.Set("Sec-Fetch-Site", "same-origin")
					r.Header.Set("Cookie", "editor")
					_, member, err := s.Admit(t.Context(), httptest.NewRecorder(), r, netip.Addr{}, Admission{MayManage, isQueued, 100})
					if !errors.Is(err, want) || (want == nil) != (err == nil) {
						t.Fatalf("queued: %t: got %v, want %v", isQueued, err, want)
					}
					if text, err := io.ReadAll(r.Body); want == nil && (err != nil || string(text) != "{}" || !member.Permissions.ManageManifests) {
						t.Errorf("got the body %q, %v of %+v, want all of it, of an editor", text, err, member)
					}
				})
			})
		}
	}
}

// What is wrong with a body is said when it is read.
func TestAdmitKeepsWhatIsWrongWithABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaff(t, platformtest.New())
		r := httptest.NewRequest(http.MethodPost, "https://news.example.com/ghost/lychgate/desk/events", strings.NewReader(strings.Repeat("a", 101)))
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Cookie", "editor")
		w := httptest.NewRecorder()
		if _, _, err := s.Admit(t.Context(), w, r, netip.Addr{}, Admission{MayManage, false, 100}); err != nil {
			t.Fatalf("s.Admit: %v", err)
		}
		if _, err := ReadBody(w, r, 100); !errors.Is(err, ErrTooLarge) {
			t.Errorf("reading it: got %v, want %v", err, ErrTooLarge)
		}
	})
}
