package members

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// However the response to a change of many members ends, if it was one of success, the
// members are compared.
func TestBulkChangesStartAComparison(t *testing.T) {
	status := func(code int) api.Next {
		return func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(code); return nil }
	}
	for name, test := range map[string]struct {
		path string
		next api.Next
		want bool
	}{
		"done":            {"/bulk", status(http.StatusOK), true},
		"done, and more":  {"/bulk", status(http.StatusAccepted), true},
		"done, in a body": {"/bulk", func(w http.ResponseWriter, _ *http.Request) error { _, err := w.Write(nil); return err }, true},
		"done, and the answer breaks off": {"/bulk", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusOK)
			panic(http.ErrAbortHandler)
		}, true},
		"refused":   {"/bulk", status(http.StatusForbidden), false},
		"no answer": {"/bulk", func(http.ResponseWriter, *http.Request) error { return errors.New("cut off") }, false},
		"another":   {"/other", status(http.StatusOK), false},
		"hints first": {"/bulk", func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(http.StatusEarlyHints)
			return status(404)(w, r)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := dbtest.SQLite(t)
			store, err := memberstore.NewSQL(t.Context(), db)
			if err != nil {
				t.Fatalf("memberstore.NewSQL: %v", err)
			}
			queue, err := work.New(t.Context(), db, zap.NewNop(), nil)
			if err != nil {
				t.Fatalf("work.New: %v", err)
			}
			site := &Site{
				Members: members.New(members.Config{Site: "daily", Store: store}),
				Inbound: inbound.New(inbound.Config{
					Store: store, Sites: map[string]inbound.Site{"daily": {Platform: platformtest.New()}}, Logger: zap.NewNop(),
					Work: queue,
				}),
			}
			h := &API{Logger: zap.NewNop()}
			ctx, leave := context.WithCancel(t.Context())
			leave() // the caller has left by then
			func() {
				defer func() { _ = recover() }()
				_ = h.Pass(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPut, test.path, nil), site, test.next)
			}()
			err = queue.DoDue(t.Context())
			c, _ := store.FindComparison(t.Context(), "daily")
			if c.FinishedAt.IsZero() == test.want || err != nil {
				t.Errorf("compared: %+v, %v, want it: %t", c, err, test.want)
			}
		})
	}
}
