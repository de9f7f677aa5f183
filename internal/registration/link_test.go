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
	good := NewLink(key, "e1", "Jane@exämple.com", Wishes{}, made)
	text, err := base64.RawURLEncoding.DecodeString(good.Token)
	if err != nil {
		t.Fatalf("base64: %v", err)
	}
	later := append([]byte(nil), text...)
	later[7]++
	noNews := NewLink(key, "e1", "jane@exämple.com", Wishes{NoNews: true}, made)
	withoutSaying, err := base64.RawURLEncoding.DecodeString(noNews.Token)
	if err != nil {
		t.Fatalf("base64: %v", err)
	}
	withoutSaying = append(withoutSaying[:8], withoutSaying[9:]...)
	for name, c := range map[string]struct {
		link         Link
		event, email string
		at           time.Time
		want         bool
		noNews       bool
	}{
		"at once":                 {good, "e1", "Jane@exämple.com", made, true, false},
		"to the same address":     {good, "e1", "jane@xn--exmple-cua.com", made, true, false},
		"a moment before its end": {good, "e1", "jane@exämple.com", made.Add(LinkTTL - time.Millisecond), true, false},
		"at its end":              {good, "e1", "jane@exämple.com", made.Add(LinkTTL), false, false},
		"another event":           {good, "e2", "jane@exämple.com", made, false, false},
		"another reader":          {good, "e1", "john@exämple.com", made, false, false},
		"a reader without email":  {good, "e1", "", made, false, false},
		"another site's key":      {Link{[]byte("another"), good.Token}, "e1", "jane@exämple.com", made, false, false},
		"no token":                {Link{key, ""}, "e1", "jane@exämple.com", made, false, false},
		"half a token":            {Link{key, good.Token[:16]}, "e1", "jane@exämple.com", made, false, false},
		"two tokens":              {Link{key, good.Token + good.Token}, "e1", "jane@exämple.com", made, false, false},
		"no base64":               {Link{key, strings.Repeat("!", 32)}, "e1", "jane@exämple.com", made, false, false},
		"line breaks":             {Link{key, strings.Repeat("\n", 32)}, "e1", "jane@exämple.com", made, false, false},
		"a short token":           {Link{key, good.Token[:10] + strings.Repeat("\r\n", 11)}, "e1", "jane@exämple.com", made, false, false},
		"another time":            {Link{key, base64.RawURLEncoding.EncodeToString(later)}, "e1", "jane@exämple.com", made, false, false},
		"a token of the event of the reader's name": {NewLink(key, "e1 jane@exämple.com", "", Wishes{}, made), "e1", "jane@exämple.com", made, false, false},
		"no newsletters":       {noNews, "e1", "jane@exämple.com", made, true, true},
		"no newsletters, late": {noNews, "e1", "jane@exämple.com", made.Add(LinkTTL), false, false},
		"what it says cut out": {Link{key, base64.RawURLEncoding.EncodeToString(withoutSaying)}, "e1", "jane@exämple.com", made, false, false},
	} {
		opened, ok := c.link.opens(c.event, c.email, c.at)
		if ok != c.want || ok && (!opened.made.Equal(made) || opened.NoNews != c.noNews) {
			t.Errorf("%s: %t, %+v; want %t, %s, no newsletters %t", name, ok, opened, c.want, made, c.noNews)
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
			to, err := here.Invite(t.Context(), "daily", "party", who.Email, Wishes{}, key)
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
		later := NewLink(key, party, reader(1).Email, Wishes{}, db.Now().Add(time.Second))
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

// Who says no to newsletters leaves them if they became a member by the link, and nobody else does: what a member has
// chosen before stays, and nobody takes another off them.
func TestNoNewslettersForNewMembersAlone(t *testing.T) {
	db := dbtest.SQLite(t)
	edges, key := edgesWithParty(t, db, 2, map[string]any{"max_attendees": 1.0}), []byte("a key")
	here, now := edges[0], db.Now()
	since := func(who Reader, at time.Time) Reader {
		who.Since = at
		return who
	}
	link := func(who Reader, noNews bool) Link { return NewLink(key, party, who.Email, Wishes{NoNews: noNews}, now) }
	want := func(what string, who Reader, link Link, want bool) {
		t.Helper()
		if got, err := here.WantsNoNews(t.Context(), "daily", "party", who, link); got != want || err != nil {
			t.Errorf("%s: %t, %v; want %t", what, got, err, want)
		}
	}
	member := since(reader(1), now.Add(time.Second))
	want("a new member", member, link(member, true), true)
	want("a platform whose clock is behind", since(member, now.Add(-time.Minute)), link(member, true), true)
	want("a new member who wants them", member, link(member, false), false)
	want("an earlier member", since(member, now.Add(-time.Hour)), link(member, true), false)
	want("a member of whom nobody says since when", reader(1), link(member, true), false)
	want("another's link", member, link(reader(2), true), false)
	if _, err := here.RegisterByLink(t.Context(), "daily", "party", member, link(member, true)); err != nil {
		t.Fatalf("here.RegisterByLink: %v", err)
	}
	want("who is registered", member, link(member, true), false)
	here = edges[1] // which has not read it yet
	want("where all places are taken", since(reader(2), now), link(reader(2), true), false)
	if _, err := here.Cancel(t.Context(), "daily", "party", member); err != nil {
		t.Fatalf("here.Cancel: %v", err)
	}
	want("who has cancelled", member, link(member, true), false)
	want("a new member of a day ago", since(reader(2), now.Add(-newMember-time.Second)), NewLink(key, party, reader(2).Email, Wishes{NoNews: true}, now.Add(-newMember)), false)
}
