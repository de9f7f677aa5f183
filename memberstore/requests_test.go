package memberstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

func TestRepeatedRequestsGetTheFirstResponse(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx := t.Context()
		r := members.Request{Site: "daily", Integration: "crm", Key: "k", Hash: "h", GUID: "guid-1"}
		other := r
		other.Hash = "other"
		again := r
		again.GUID = "guid-2"
		elsewhere := r
		elsewhere.Integration = "form"
		answered := &members.Response{Header: "{}", Body: `{"success":true}`}

		steps := []struct {
			name     string
			request  members.Request
			at       time.Duration // since the first
			want     members.Begun
			err      error
			end      bool              // the request ends before the next step
			response *members.Response // of the request that ends
		}{
			{name: "first", request: r, want: members.Begun{GUID: "guid-1"}},
			{name: "while it is under way", request: r, at: time.Second, err: members.ErrUnderWay},
			{name: "another integration's", request: elsewhere, at: time.Second, end: true, want: members.Begun{GUID: "guid-1"}},
			{name: "forgotten, so first again", request: elsewhere, at: 2 * time.Second, want: members.Begun{GUID: "guid-1"}},
			{name: "after its process died", request: again, at: time.Minute, want: members.Begun{GUID: "guid-1"}, end: true, response: answered},
			{name: "again", request: r, at: 2 * time.Minute, want: members.Begun{GUID: "guid-1", Response: answered}},
			{name: "with another body", request: other, at: 2 * time.Minute, err: members.ErrOtherRequest},
			{name: "to the end of the day", request: r, at: 24*time.Hour + time.Minute - time.Millisecond, want: members.Begun{GUID: "guid-1", Response: answered}},
			{name: "a key that is not UTF-8", request: members.Request{Site: "daily", Integration: "crm", Key: "\xff\xfe", Hash: "h"}, err: members.ErrNotText},
			{name: "a key with NUL", request: members.Request{Site: "daily", Integration: "crm", Key: "\x00", Hash: "h"}, err: members.ErrNotText},
			{name: "the next day", request: other, at: 24*time.Hour + time.Minute, want: members.Begun{GUID: "guid-1"}},
		}
		for _, step := range steps {
			got, err := store.BeginRequest(ctx, step.request, then.Add(step.at))
			if diff := cmp.Diff(step.want, got); diff != "" || !errors.Is(err, step.err) {
				t.Errorf("%s: BeginRequest: error %v, want none (-want +got):\n%s", step.name, err, diff)
			}
			if step.end {
				if err := store.EndRequest(ctx, step.request, step.response); err != nil {
					t.Fatalf("store.EndRequest: %v", err)
				}
			}
		}
	})
}

// A request is one owner's. Another may take it over once that one has not said for some
// seconds that it is at it, and then nothing of it can be stored but by the new owner.
func TestRequestsHaveOneOwner(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx := t.Context()
		owned := func(owner string) members.Request {
			return members.Request{Site: "daily", Integration: "crm", Key: "k", Hash: "h", GUID: "guid-" + owner, Owner: owner}
		}
		a, b, c := owned("a"), owned("b"), owned("c")
		begin := func(r members.Request, at time.Duration, want members.Begun, wantErr error) {
			t.Helper()
			got, err := store.BeginRequest(ctx, r, then.Add(at))
			if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
				t.Errorf("%s after %v: %v, want %v %s", r.Owner, at, err, wantErr, diff)
			}
		}
		begin(a, 0, members.Begun{GUID: "guid-a"}, nil)
		begin(b, 3*time.Second, members.Begun{}, members.ErrUnderWay)
		if err := store.RenewRequest(ctx, a, then.Add(3*time.Second)); err != nil {
			t.Fatalf("store.RenewRequest: %v", err)
		}
		begin(b, 6*time.Second, members.Begun{}, members.ErrUnderWay)
		begin(b, 7*time.Second, members.Begun{GUID: "guid-a"}, nil)

		// The first owner stalled, and goes on now.
		write := func(owner members.Request) members.Record {
			m := jane()
			m.Claim = &owner
			return m
		}
		if err := store.Insert(ctx, write(a), "crm", members.Lease{}); !errors.Is(err, members.ErrUnderWay) {
			t.Errorf("insert by the owner before: %v", err)
		}
		if err := store.RenewRequest(ctx, a, then.Add(8*time.Second)); err != nil {
			t.Fatalf("store.RenewRequest: %v", err)
		}
		for _, body := range []*members.Response{nil, {Header: "{}", Body: "a"}} {
			if err := store.EndRequest(ctx, a, body); err != nil {
				t.Fatalf("store.EndRequest: %v", err)
			}
		}
		if err := store.Insert(ctx, write(b), "crm", members.Lease{}); err != nil {
			t.Errorf("insert by the owner: %v", err)
		}
		if err := store.Update(ctx, write(a)); !errors.Is(err, members.ErrUnderWay) {
			t.Errorf("update by the owner before: %v", err)
		}
		if err := store.Remove(ctx, write(a)); !errors.Is(err, members.ErrUnderWay) {
			t.Errorf("removal by the owner before: %v", err)
		}
		// What is stored is done, unless it is put back.
		begin(c, 12*time.Second, members.Begun{IsDone: true, GUID: jane().GUID}, nil)
		if err := store.Revert(ctx, members.Write{After: write(b)}); !errors.Is(err, members.ErrConflict) {
			t.Errorf("put back by the owner before: %v", err)
		}
		if err := store.Revert(ctx, members.Write{After: write(c)}); err != nil {
			t.Errorf("put back by the owner: %v", err)
		}
		begin(a, 20*time.Second, members.Begun{GUID: jane().GUID}, nil)
		answered := &members.Response{Header: "{}", Body: "c"}
		if err := store.EndRequest(ctx, a, answered); err != nil {
			t.Fatalf("store.EndRequest: %v", err)
		}
		begin(b, 20*time.Second, members.Begun{GUID: jane().GUID, Response: answered}, nil)
	})
}
