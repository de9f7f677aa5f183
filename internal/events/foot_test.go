package events

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// What readers without JavaScript are told of an event: all of it, as text.
func TestFootHasTheEventAsText(t *testing.T) {
	open := sitePage{script: "/event.js", language: "de", takesRegistrations: true}
	full := map[string]any{
		"event_date": "2031-05-01", "event_time_start": "19:00", "event_time_end": "21:00", "event_time_zone": "Europe/Berlin",
		"location": "The Pier", "access": "free", "platform_url": "https://meet.example.com/secret",
	}
	late := map[string]any{"event_date": "2031-05-01", "registration_deadline": "2031-04-29", "access": "free"}
	now := time.Date(2031, time.April, 30, 12, 0, 0, 0, time.UTC)
	const when = `<p dir="auto" lang="de">Donnerstag, 1. Mai 2031, 19:00–21:00 Uhr (Europe/Berlin)</p>`
	const where = `<p dir="auto">The Pier</p>`
	for name, test := range map[string]struct {
		values map[string]any
		status Status
		page   sitePage
		want   []string
	}{
		"an event to register for": {full, Published, open, []string{when, where, `<p dir="auto" lang="de">Aktiviere JavaScript, um dich anzumelden.</p>`}},
		"with the text of staff": {
			full, Published,
			sitePage{script: "/event.js", language: "de", register: "Write <to> us,\n& come.", takesRegistrations: true},
			[]string{when, where, `<p dir="auto">Write &lt;to&gt; us, &amp; come.</p>`},
		},
		"of an edge that serves no readers": {full, Published, sitePage{language: "de", takesRegistrations: true}, []string{when, where}},
		"of a site without registration":    {full, Published, sitePage{script: "/event.js", language: "de", register: "Write to us."}, []string{when, where}},
		"cancelled":                         {full, Cancelled, open, []string{`<p dir="auto" lang="de"><strong>Diese Veranstaltung ist abgesagt.</strong></p>`, when, where}},
		"before the deadline": {
			late, Published,
			sitePage{script: "/event.js", language: "de", takesRegistrations: true, now: now.AddDate(0, 0, -1)},
			[]string{
				`<p dir="auto" lang="de">Donnerstag, 1. Mai 2031</p>`, `<p dir="auto" lang="de">Die Anmeldung ist bis Dienstag, 29. April 2031 möglich.</p>`,
				`<p dir="auto" lang="de">Aktiviere JavaScript, um dich anzumelden.</p>`,
			},
		},
		"before the deadline, with the text of staff": {
			late, Published,
			sitePage{script: "/event.js", language: "de", register: "Write to us.", takesRegistrations: true, now: now.AddDate(0, 0, -1)},
			[]string{`<p dir="auto" lang="de">Donnerstag, 1. Mai 2031</p>`, `<p dir="auto">Write to us.</p>`},
		},
		"after the deadline":          {late, Published, sitePage{script: "/event.js", language: "de", takesRegistrations: true, now: now}, []string{`<p dir="auto" lang="de">Donnerstag, 1. Mai 2031</p>`}},
		"that is over":                {full, Published, sitePage{script: "/event.js", language: "de", takesRegistrations: true, now: now.AddDate(0, 0, 3)}, []string{when, where}},
		"that takes no registrations": {map[string]any{"event_date": "2031-05-01"}, Published, open, []string{`<p dir="auto" lang="de">Donnerstag, 1. Mai 2031</p>`}},
		"without an end, online, for anyone": {
			map[string]any{"event_date": "2031-12-01", "event_time_start": "19:00", "access": "anyone", "platform_url": "https://meet.example.com/?a=b&c=`d'"},
			Published, open,
			[]string{
				`<p dir="auto" lang="de">Montag, 1. Dezember 2031 um 19:00 (UTC)</p>`,
				`<p dir="auto"><a href=https://meet.example.com/?a&#61;b&amp;c&#61;&#96;d&#39;>https://meet.example.com/?a=b&amp;c=` + "`" + `d&#39;</a></p>`,
				`<p dir="auto" lang="de">Aktiviere JavaScript, um dich anzumelden.</p>`,
			},
		},
		"with markup": {
			map[string]any{"location": "</noscript>" + footEnd + "<script>", "access": "anyone", "platform_url": "javascript:alert(1)"},
			Published,
			sitePage{},
			[]string{`<p dir="auto">&lt;/noscript&gt;&lt;!-- /lychgate-event-text --&gt;&lt;script&gt;</p>`},
		},
		"at a long place":           {map[string]any{"location": strings.Repeat("é", 1000)}, Published, open, []string{`<p dir="auto">` + strings.Repeat("é", maxPlace) + "…</p>"}},
		"of which nothing is known": {map[string]any{}, Published, open, nil},
	} {
		e := newEvent(test.values)
		e.Status = test.status
		want := ""
		if test.want != nil {
			want = footStart + "\n<noscript>\n" + strings.Join(test.want, "\n") + "\n</noscript>\n" + footEnd
		}
		if diff := cmp.Diff(want, e.foot(test.page, false)); diff != "" {
			t.Errorf("%s (-want +got): %s", name, diff)
		}
	}
}

// What staff write at the end of a page, around an event's part, stays as it is.
func TestWithFoot(t *testing.T) {
	part, other := footStart+"\n<noscript>old</noscript>\n"+footEnd, footStart+"\n<noscript>new</noscript>\n"+footEnd
	for _, test := range []struct{ name, code, part, want string }{
		{"nothing into nothing", "", "", ""},
		{"into nothing", "", other, other},
		{"nothing in place of it", "a\n" + part + "\nb", "", "a\nb"},
		{"beside staff's", "a\n\n", other, "a\n" + other},
		{"in its place", "a\n" + part + "b", other, "a\n" + other + "b"},
		{"in place of one that was cut off", "a\n" + footStart + "\n<noscript>ol", other, "a\n" + other},
		{"before what follows one without its end", "a\n" + strings.TrimSuffix(part, footEnd) + "<script>x</script>", other, "a\n" + other + "\n<script>x</script>"},
	} {
		got := withFoot(test.code, test.part)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got): %s", test.name, diff)
		}
		if again := withFoot(got, test.part); again != got {
			t.Errorf("%s: a second time it is %q, want %q", test.name, again, got)
		}
	}
}

// The text at the end of a post is in the publication's language, which is asked for once, and is
// English while the platform does not say. What staff write around it stays, and it goes with the
// event.
func TestFootOfAPost(t *testing.T) {
	store := want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t)))
	h := platformtest.New()
	asked, isDown := 0, true
	h.Fail(func(call, _ string) error {
		if call != "publication" {
			return nil
		}
		if asked++; isDown {
			return platformtest.ErrDown
		}
		return nil
	})
	h.ForMembers = true // so that not everybody has what the text says
	r := benchOf(t, store, h)
	r.UsePages(Pages{Script: "/event.js"})
	e := r.published(values)
	foot := func(text string) string { return footStart + "\n<noscript>\n" + text + "</noscript>\n" + footEnd }
	english := foot(`<p dir="auto" lang="en">Thursday, May 1, 2031, 7:00 – 9:00 PM (Europe/Berlin)</p>` + "\n" + `<p dir="auto" lang="en">Turn on JavaScript to register.</p>` + "\n")
	german := foot(`<p dir="auto" lang="de">Donnerstag, 1. Mai 2031, 19:00–21:00 Uhr (Europe/Berlin)</p>` + "\n" + `<p dir="auto" lang="de">Aktiviere JavaScript, um dich anzumelden.</p>` + "\n")
	has := func(what, foot string) {
		t.Helper()
		p := h.EventsPostsInOrder()[0]
		if diff := cmp.Diff(foot, p.Foot); diff != "" {
			t.Errorf("%s: the foot (-want +got): %s", what, diff)
		}
		if isThere := strings.Contains(p.Head, "/event.js"); isThere != strings.Contains(foot, footStart) {
			t.Errorf("%s: the head has the script: %t, want it beside the foot: %s", what, isThere, p.Head)
		}
	}
	save := func(description string) {
		t.Helper()
		changed := map[string]any{"description": description}
		for _, key := range []string{"name", "event_date", "event_time_start", "event_time_end", "event_time_zone", "access"} {
			changed[key] = values[key]
		}
		e = want[Event](t)(r.Save(t.Context(), "daily", e.ID, 0, Edit{"solo", "webinar", changed}, typeOf(t, "webinar")))
	}
	has("while the language is not known", english)
	isDown = false
	h.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Foot = "<!-- before -->\n" + p.Foot + "\n<!-- behind -->" })
	save("One.")
	save("Two.")
	has("saved", "<!-- before -->\n"+german+"\n<!-- behind -->")
	if asked != 2 {
		t.Errorf("the platform was asked for its language %d times, want 2: one that failed, and one for all saves", asked)
	}
	want[Event](t)(r.Unpublish(t.Context(), "daily", e.ID, 0))
	has("unpublished", "<!-- before -->\n"+german+"\n<!-- behind -->")
	if err := r.Delete(t.Context(), "daily", e.ID, 0); err != nil {
		t.Fatalf("r.Delete: %v", err)
	}
	has("deleted", "<!-- before -->\n<!-- behind -->")
}
