package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// carousel is a platform whose list of members repeats its last pages for ever,
// as if a proxy ignored the page in the request.
type carousel struct {
	*platformtest.Platform
	pages, repeated int
	asked           *int
}

func (c carousel) List(context.Context, string, time.Time) (page []platform.Member, left int, err error) {
	n := *c.asked
	*c.asked++
	if n >= c.pages {
		n = c.pages - 1 - (n-c.pages)%c.repeated
	}
	for i := range 3 {
		page = append(page, platform.Member{ID: fmt.Sprintf("c-%d-%d", n, i), Email: fmt.Sprintf("m%d.%d@example.com", n, i)})
	}
	return page, 1000, nil
}

// Reading a list of members without an end stops with an error.
func TestListRepeats(t *testing.T) {
	for _, test := range []struct{ pages, repeated int }{{1, 1}, {2, 1}, {2, 2}, {7, 3}, {9, 1}, {30, 30}} {
		t.Run(fmt.Sprintf("the last %d of %d pages", test.repeated, test.pages), func(t *testing.T) {
			b := membertest.New(t, dbtest.SQLite(t))
			c := carousel{platformtest.New(), test.pages, test.repeated, new(int)}
			sync := b.NewEdge(inbound.Site{Platform: c}, time.Minute).Sync
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			got, err := sync.Import(ctx, membertest.Site, b.Store, false, func(int, int) {})
			if !errors.Is(err, inbound.ErrListRepeats) || got.Added != 3*test.pages {
				t.Errorf("an import ends with %+v, %v", got, err)
			}
			if most := 4 * (test.pages + 1); *c.asked > most {
				t.Errorf("%d pages were asked for", *c.asked)
			}
			*c.asked = 0
			if err := sync.CatchUpSince(ctx, membertest.Site, b.Now); !errors.Is(err, inbound.ErrListRepeats) {
				t.Errorf("catching up ends with %v", err)
			}
		})
	}
}

// An operator is told that the list of members has no end.
func TestListRepeatsIsLogged(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var logged string
	logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}), zapcore.AddSync(writer(func(line []byte) {
		logged += string(line)
		cancel()
	})), zapcore.WarnLevel))
	sync := inbound.New(inbound.Config{
		Store: b.Store, Logger: logger, Timeout: time.Second, Work: b.Work, Now: b.Clock,
		Sites: map[string]inbound.Site{membertest.Site: {Platform: carousel{b.Platform, 1, 1, new(int)}, WebhookURL: "https://edge/webhooks"}},
	})
	sync.Work.Run(ctx)
	want := `{"msg":"cannot get changes from platform, they may be seen late","site":"daily","problem":"` + inbound.ErrListRepeats.Error() + `"}` + "\n"
	if logged != want {
		t.Errorf("logged %q, want %q", logged, want)
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
