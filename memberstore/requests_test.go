package memberstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/members"
)

func TestRequests(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		r := members.Request{Site: "daily", Integration: "crm", Key: "k", Hash: "h", GUID: "guid-1"}
		other := r
		other.Hash = "other"
		again := r
		again.GUID = "guid-2"
		elsewhere := r
		elsewhere.Integration = "form"
		answered := &members.Answer{Header: "{}", Body: `{"success":true}`}

		steps := []struct {
			name    string
			request members.Request
			at      time.Duration // since the first
			want    members.Begun
			err     error
			end     bool            // the request ends before the next step
			answer  *members.Answer // of the request that ends
		}{
			{name: "first", request: r, want: members.Begun{GUID: "guid-1"}},
			{name: "while it is under way", request: r, at: time.Second, err: members.ErrUnderWay},
			{name: "another integration's", request: elsewhere, at: time.Second, end: true, want: members.Begun{GUID: "guid-1"}},
			{name: "forgotten, so first again", request: elsewhere, at: 2 * time.Second, want: members.Begun{GUID: "guid-1"}},
			{name: "after its process died", request: again, at: time.Minute, want: members.Begun{CutOff: true, GUID: "guid-1"}, end: true, answer: answered},
			{name: "again", request: r, at: 2 * time.Minute, want: members.Begun{GUID: "guid-1", Answer: answered}},
			{name: "with another body", request: other, at: 2 * time.Minute, err: members.ErrOtherRequest},
			{name: "to the end of the day", request: r, at: 24*time.Hour + time.Minute - time.Millisecond, want: members.Begun{GUID: "guid-1", Answer: answered}},
			{name: "a key that is not UTF-8", request: members.Request{Site: "daily", Integration: "crm", Key: "\xff\xfe", Hash: "h"}, err: members.ErrNotText},
			{name: "a key with NUL", request: members.Request{Site: "daily", Integration: "crm", Key: "\x00", Hash: "h"}, err: members.ErrNotText},
			{name: "the next day", request: other, at: 24*time.Hour + time.Minute, want: members.Begun{GUID: "guid-1"}},
		}
		for _, step := range steps {
			got, err := store.BeginRequest(ctx, step.request, then.Add(step.at))
			if err == nil {
				if got.Answer == nil && !got.CutOff && !got.BegunAt.Equal(then.Add(step.at)) || got.BegunAt.After(then.Add(step.at)) {
					t.Errorf("%s: begun at %s", step.name, got.BegunAt)
				}
				got.BegunAt = time.Time{}
			}
			if diff := cmp.Diff(step.want, got); diff != "" || !errors.Is(err, step.err) {
				t.Errorf("%s: %s, %v", step.name, diff, err)
			}
			if step.end {
				if err := store.EndRequest(ctx, step.request, step.answer); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
