package memberstore

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/internal/dbtest"
)

// An import that is cut off goes on where it was, and changes nobody who is
// there.
func TestImports(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		insert(t, store, jane())
		if _, err := store.FindImport(ctx, "daily"); !errors.Is(err, ErrNotFound) {
			t.Errorf("none yet: %v", err)
		}
		same, email := joe(), joe()
		same.GUID, same.Email, same.PlatformID = "guid-2", "else@example.com", "p-1"
		email.GUID, email.Email = "guid-3", "JANE@example.com"
		for _, i := range []Import{
			{Site: "daily", LastID: "p-2", Done: 3, StartedAt: then},
			{Site: "daily", LastID: "p-3", Done: 4, StartedAt: then},
		} {
			added, err := store.SaveImport(ctx, i, []Member{same, email, joe()})
			if want := 4 - i.Done; added != want || err != nil { // joe, the first time
				t.Errorf("%d added, want %d: %v", added, want, err)
			}
			got, err := store.FindImport(ctx, "daily")
			if diff := cmp.Diff(i, got); diff != "" || err != nil {
				t.Errorf("%s, %v", diff, err)
			}
		}
		want := jane()
		want.MemberID = ""
		for email, want := range map[string]Member{"jane@example.com": want, "joe@example.com": joe()} {
			if diff := cmp.Diff(want, find(t, store, Key{Site: "daily", Email: email})); diff != "" {
				t.Error(diff)
			}
		}
		if err := store.EndImport(ctx, "daily"); err != nil {
			t.Fatal(err)
		}
		if _, err := store.FindImport(ctx, "daily"); !errors.Is(err, ErrNotFound) {
			t.Errorf("after its end: %v", err)
		}
	})
}
