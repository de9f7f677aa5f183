package events

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// eveningCard is what the card of an event with values says.
const eveningCard = "<p dir=\"auto\" lang=\"de\">Donnerstag, 1. Mai 2031, 19:00–21:00 Uhr (Europe/Berlin)</p>\n"

// The card in a post's text says what there is to know, and leads to the page by an address that stays.
func TestCardSaysWhatTheEventIs(t *testing.T) {
	page := sitePage{script: "/event.js", list: "/ghost/lychgate/events", language: "de", takesRegistrations: true, publication: platform.Publication{URL: "https://news.example.com/blog/"}}
	e := newEvent(map[string]any{"event_date": "2031-05-01", "location": "The <Pier>", "access": "free", "platform_url": "https://meet.example.com/secret"})
	e.Status = Published
	const when, where = "<p dir=\"auto\" lang=\"de\">Donnerstag, 1. Mai 2031</p>\n", "<p dir=\"auto\">The &lt;Pier&gt;</p>\n"
	link := func(text string) string {
		return `<a href="https://news.example.com/ghost/lychgate/events/` + e.ID + `.html">` + text + "</a></p>\n"
	}
	for name, test := range map[string]struct {
		change func(*Event, *sitePage)
		want   string
	}{
		"an event to register for": {func(*Event, *sitePage) {}, when + where + `<p dir="auto" lang="de">` + link("Du kannst dich für diese Veranstaltung anmelden.")},
		"with a deadline": {
			func(e *Event, of *sitePage) {
				e.Values = map[string]any{"event_date": "2031-05-01", "access": "free", "registration_deadline": "2031-04-30", "deadline_time_end": "12:00", "event_time_zone": "Europe/Berlin"}
			},
			when + "<p dir=\"auto\" lang=\"de\">Die Anmeldung ist bis Mittwoch, 30. April 2031 um 12:00 (Europe/Berlin) möglich.</p>\n" +
				`<p dir="auto" lang="de">` + link("Du kannst dich für diese Veranstaltung anmelden."),
		},
		"with the text of staff":        {func(_ *Event, of *sitePage) { of.register = "Come\n& see." }, when + where + `<p dir="auto">` + link("Come &amp; see.")},
		"of a site without an address":  {func(_ *Event, of *sitePage) { of.publication.URL = "" }, when + where},
		"of an edge without readers":    {func(_ *Event, of *sitePage) { of.list = "" }, when + where},
		"of a site without registering": {func(_ *Event, of *sitePage) { of.takesRegistrations = false }, when + where},
		"cancelled": {
			func(e *Event, _ *sitePage) { e.Status = Cancelled },
			"<p dir=\"auto\" lang=\"de\"><strong>Diese Veranstaltung ist abgesagt.</strong></p>\n" + when + where,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, of := *e, page
			test.change(&e, &of)
			if diff := cmp.Diff(test.want, e.cardContent(of)); diff != "" {
				t.Errorf("the card (-want +got): %s", diff)
			}
		})
	}
}

// What staff do with the card stays: where they move it, what they write into it, and that they delete it. On request
// ours is put back.
func TestCardAndStaff(t *testing.T) {
	const byHand, edited = "<lychgate-event></lychgate-event>", "<lychgate-event data-sum=\"0123456789abcdef\">Come!</lychgate-event>"
	write := func(card string) func(*bench, string) {
		return func(r *bench, id string) { r.ghost.EditPost(id, func(p *platform.EventPost) { p.Card = card }) }
	}
	ours := "ours" // whatever it says
	for name, test := range map[string]struct {
		staff  func(r *bench, post string)
		wanted string
		is     Card
		put    string // after PutCard
	}{
		"nothing":             {func(*bench, string) {}, ours, CardIsOurs, ours},
		"deleted it":          {write(""), "", CardGone, ours},
		"wrote into it":       {write(edited), edited, CardEdited, ours},
		"wrote one of theirs": {write(byHand), byHand, CardEdited, ours},
		"put space around it": {func(r *bench, id string) {
			r.ghost.EditPost(id, func(p *platform.EventPost) { p.Card = "\n" + p.Card + "\n" })
		}, ours, CardIsOurs, ours},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBench(t, dbtest.SQLite(t))
			e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
			is := func(what, wanted string, state Card) {
				t.Helper()
				e, p := want[Event](t)(r.Find(t.Context(), "daily", e.ID)), r.ghost.EventsPostsInOrder()[0]
				got := p.Card
				if e.isOurs(got) && strings.Contains(got, "1. Juni 2031") == (what != "published") {
					got = ours
				}
				if got != wanted || e.Post.Card != state {
					t.Errorf("%s: the card is %q, %s, want %q, %s", what, p.Card, e.Post.Card, wanted, state)
				}
			}
			is("published", ours, CardIsOurs)
			test.staff(r, e.Post.ID)
			save := func() {
				want[Event](t)(r.Save(t.Context(), "daily", e.ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Party", "event_date": "2031-06-01"}}, typeOf(t, "webinar")))
			}
			save()
			is("saved", test.wanted, test.is)
			save()
			is("saved again", test.wanted, test.is)
			r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Excerpt = "Staff's." })
			r.look(e.ID)
			is("polled", test.wanted, test.is)
			want[Event](t)(r.Unpublish(t.Context(), "daily", e.ID, 0))
			want[Event](t)(r.Publish(t.Context(), "daily", e.ID, 0, typeOf(t, "webinar")))
			is("published again", test.wanted, test.is)
			want[Event](t)(r.PutCard(t.Context(), "daily", e.ID, 0))
			is("put back", test.put, CardIsOurs)
			save()
			is("saved after that", test.put, CardIsOurs)
		})
	}
}

// An event that readers do not find any more keeps the place of its card, and says nothing there. One that is deleted has
// none, but for what staff wrote into it.
func TestCardOfAnEventThatIsTakenBack(t *testing.T) {
	r := newBench(t, dbtest.SQLite(t))
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	card := func() string { return r.ghost.EventsPostsInOrder()[0].Card }
	shown := card()
	want[Event](t)(r.Unpublish(t.Context(), "daily", e.ID, 0))
	want[Event](t)(r.Save(t.Context(), "daily", e.ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Party"}}, typeOf(t, "webinar")))
	if got := card(); got != e.cardOf("") {
		t.Errorf("unpublished, and without its date: the card is %q, want an empty one in its place", got)
	}
	want[Event](t)(r.Save(t.Context(), "daily", e.ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Party", "event_date": "2031-05-01"}}, typeOf(t, "webinar")))
	if got := card(); got != shown {
		t.Errorf("as it was: the card is %q, want %q", got, shown)
	}
	if err := r.Delete(t.Context(), "daily", e.ID, 0); err != nil {
		t.Fatalf("r.Delete: %v", err)
	}
	if got := card(); got != "" {
		t.Errorf("deleted: the card is %q, want none", got)
	}
}

// Ghost writes its own address in a text anew once it has another: that is nobody's change. Neither is the copy of another
// event's card this one's, nor does a card go that readers have by email.
func TestWhoseCardItIs(t *testing.T) {
	e, other := newEvent(map[string]any{"event_date": "2031-05-01", "access": "free"}), newEvent(map[string]any{})
	e.Status = Published
	other.ID = strings.Repeat("b", 26)
	page := sitePage{list: "/events", takesRegistrations: true, publication: platform.Publication{URL: "https://old.example.com/"}}
	card := e.cardOf(e.cardContent(page))
	if moved := strings.ReplaceAll(card, "https://old.example.com", "http://news.example.com:8080"); moved == card || !e.isOurs(moved) {
		t.Errorf("at another address the card %s is not ours, want that it is", moved)
	}
	if old := strings.Replace(card, ` data-id="`+e.ID+`"`, "", 1); old == card || !e.isOurs(old) {
		t.Errorf("the card of an older edge, %s, is not ours, want that it is", old)
	}
	if other.isOurs(card) || e.isOurs(strings.Replace(card, "2031", "2032", 1)) {
		t.Error("the card of another event, or one that was written into, is ours, want that it is not")
	}
	e.Status, e.Order.HasPost = Draft, true
	if got := e.withCard(platform.EventPost{HasText: true, Cards: []string{card}, Card: card, Status: platform.Sent}, nil, page).Card; got != card {
		t.Errorf("the card of a post that was sent is %q, want it as it was", got)
	}
}

// Editors copy the card of another event above an event's own, or copy its own card and write into that: its own is the one whose
// text is ours, and follows the event.
func TestCardAmongCopies(t *testing.T) {
	e, other := newEvent(map[string]any{"event_date": "2031-05-01"}), newEvent(map[string]any{"event_date": "2032-05-01"})
	e.Status, e.Post.Card = Published, CardIsOurs
	other.ID = strings.Repeat("b", 26)
	theirs, ours, isNew := other.cardOf("theirs"), e.cardOf("ours"), e.cardOf(e.cardContent(sitePage{}))
	edited := strings.Replace(ours, "ours", "edited", 1)
	for name, test := range map[string]struct {
		cards []string
		want  string
		own   int
		is    Card
		put   string // on request
	}{
		"its own alone":                     {[]string{ours}, isNew, 0, CardIsOurs, isNew},
		"below another event's":             {[]string{theirs, ours}, isNew, 1, CardIsOurs, isNew},
		"below another's, edited":           {[]string{theirs, edited}, edited, 1, CardEdited, isNew},
		"below an edited copy":              {[]string{edited, ours}, isNew, 1, CardIsOurs, isNew},
		"above another event's":             {[]string{ours, theirs}, isNew, 0, CardIsOurs, isNew},
		"deleted, with another's":           {[]string{theirs}, "", 1, CardGone, isNew},
		"deleted, with another's in a text": {[]string{"<p>See also</p>" + theirs}, "", 1, CardGone, isNew},
		"deleted, and nothing is left":      {nil, "", 0, CardGone, isNew},
	} {
		t.Run(name, func(t *testing.T) {
			p := platform.EventPost{HasText: true, Cards: test.cards, IsForAll: true}
			if len(test.cards) > 0 {
				p.Card = test.cards[0]
			}
			asked := *e
			asked.Order.PutsCard = true
			got, put := e.withCard(p, e, sitePage{}), asked.withCard(p, e, sitePage{})
			if diff := cmp.Diff([]any{test.want, test.own, test.is, test.put, test.own}, []any{got.Card, got.Own, e.cardIn(p), put.Card, put.Own}); diff != "" {
				t.Errorf("the card, its place, what it is, the card on request, its place (-want +got): %s", diff)
			}
		})
	}
}

// A post whose text cannot be read, or has no cards, is left alone, and keeps what it has at its end.
func TestPostWhoseTextIsOfAnotherKind(t *testing.T) {
	e := newEvent(map[string]any{"event_date": "2031-05-01"})
	e.Status = Published
	p := e.onto(platform.EventPost{IsForAll: true}, sitePage{})
	if p.Card != "" || !strings.Contains(p.Foot, "May 1, 2031") {
		t.Errorf("the post is %+v, want no card, and the date at its end", p)
	}
}
