package registration

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// The link of a mail registers the reader whose address it was sent to, for its event, within 24
// hours, and nobody else for anything.
func TestLinksRegisterTheirRecipientOnly(t *testing.T) {
	key, made := []byte("a key"), time.Date(2031, 5, 1, 10, 0, 0, 0, time.UTC)
	good := NewLink(key, "e1", "Jane@exämple.com", made)
	text, err := base64.RawURLEncoding.DecodeString(good.Token)
	if err != nil {
		t.Fatalf("base64: %v", err)
	}
	later := append([]byte(nil), text...)
	later[7]++
	for name, c := range map[string]struct {
		link         Link
		event, email string
		at           time.Time
		want         bool
	}{
		"at once":                 {good, "e1", "Jane@exämple.com", made, true},
		"to the same address":     {good, "e1", "jane@xn--exmple-cua.com", made, true},
		"a moment before its end": {good, "e1", "jane@exämple.com", made.Add(LinkTTL - time.Millisecond), true},
		"at its end":              {good, "e1", "jane@exämple.com", made.Add(LinkTTL), false},
		"another event":           {good, "e2", "jane@exämple.com", made, false},
		"another reader":          {good, "e1", "john@exämple.com", made, false},
		"a reader without email":  {good, "e1", "", made, false},
		"another site's key":      {Link{[]byte("another"), good.Token}, "e1", "jane@exämple.com", made, false},
		"no token":                {Link{key, ""}, "e1", "jane@exämple.com", made, false},
		"half a token":            {Link{key, good.Token[:16]}, "e1", "jane@exämple.com", made, false},
		"two tokens":              {Link{key, good.Token + good.Token}, "e1", "jane@exämple.com", made, false},
		"no base64":               {Link{key, strings.Repeat("!", 32)}, "e1", "jane@exämple.com", made, false},
		"line breaks":             {Link{key, strings.Repeat("\n", 32)}, "e1", "jane@exämple.com", made, false},
		"a short token":           {Link{key, good.Token[:10] + strings.Repeat("\r\n", 11)}, "e1", "jane@exämple.com", made, false},
		"another time":            {Link{key, base64.RawURLEncoding.EncodeToString(later)}, "e1", "jane@exämple.com", made, false},
		"a token of the event of the reader's name": {NewLink(key, "e1 jane@exämple.com", "", made), "e1", "jane@exämple.com", made, false},
	} {
		at, ok := c.link.opens(c.event, c.email, c.at)
		if ok != c.want || ok && !at.Equal(made) {
			t.Errorf("%s: %t, %s; want %t, %s", name, ok, at, c.want, made)
		}
	}
	if strings.Contains(string(text), "jane") {
		t.Errorf("the token %q has the address in it, want it left out: browsers keep it in their history", text)
	}
}

func FuzzLinks(f *testing.F) {
	f.Add("", "")
	f.Add(strings.Repeat("A", 32), "jane@example.com")
	f.Add(strings.Repeat("\n", 32), "jane@example.com")
	f.Fuzz(func(t *testing.T, token, email string) {
		if _, ok := (Link{[]byte("a key"), token}).opens("e1", email, time.Now()); ok {
			t.Errorf("%q opens for %q, want that nobody guesses one", token, email)
		}
	})
}

// A guest is invited where they could register, and registers by their link as often as they
// open it, but not once they have cancelled since.
func TestInvitedGuestsRegisterByTheirLink(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 2, map[string]any{"max_attendees": 2.0})
		here, key := edges[0], []byte("a key")
		here.edit(t, func(e *events.Event) { e.Post.URL = "https://news.example.com/party/" })
		invite := func(who Reader) (Invitation, Link) {
			t.Helper()
			to, err := here.Invite(t.Context(), "daily", "party", who.Email, key)
			if err != nil {
				t.Fatalf("here.Invite: %v", err)
			}
			_, token, _ := strings.Cut(to.Page, "https://news.example.com/party/?lychgate-registration=")
			return to, Link{key, token}
		}
		by := func(what string, who Reader, link Link, want brief) {
			t.Helper()
			got, err := here.RegisterByLink(t.Context(), "daily", "party", who, link)
			if diff := cmp.Diff(want, briefOf(got)); err != nil || diff != "" {
				t.Errorf("%s: %v, want -, got +: %s", what, err, diff)
			}
		}
		can := brief{State: messaging.CanRegister}
		is := brief{State: messaging.Registered, Taken: 1, HasPlace: true, URL: "https://example.com/room"}
		to, link := invite(reader(1))
		if len(link.Token) != 32 || !to.MaySignUp || to.State != messaging.LoginRequiredFree {
			t.Errorf("invited to %q, sign-up %t, state %s; want a token, true, %s", to.Page, to.MaySignUp, to.State, messaging.LoginRequiredFree)
		}
		by("nobody is signed in", Reader{}, link, brief{State: messaging.LoginRequiredFree})
		by("somebody else", reader(2), link, can)
		by("the reader", reader(1), link, is)
		by("the reader again", reader(1), link, is)
		if _, err := here.Cancel(t.Context(), "daily", "party", reader(1)); err != nil {
			t.Fatalf("here.Cancel: %v", err)
		}
		by("who has cancelled since", reader(1), link, can)
		later := NewLink(key, party, reader(1).Email, db.Now().Add(time.Second))
		by("by a later link", reader(1), later, is)
		_, other := invite(reader(2))
		by("another", reader(2), other, brief{State: messaging.Registered, Taken: 2, HasPlace: true, URL: "https://example.com/room"})
		if to, _ := invite(reader(3)); to.Page != "" || to.Reason != messaging.IsFull {
			t.Errorf("where it is full: invited to %q, reason %q; want nowhere, %s", to.Page, to.Reason, messaging.IsFull)
		}
		here.edit(t, func(e *events.Event) { e.Values["access"], e.Values["max_attendees"] = "paid", 100.0 })
		here = edges[1] // which has not read it yet
		if to, link := invite(reader(3)); link.Token == "" || to.MaySignUp {
			t.Errorf("where members pay: invited to %q, sign-up %t; want a token, false", to.Page, to.MaySignUp)
		}
	})
}
