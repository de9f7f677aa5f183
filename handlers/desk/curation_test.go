package desk_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// newsroom is a harness with two sections, whose first two slots are filled.
func newsroom(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.Declare(desktest.Top, manifest.Section{
		Key: "more", Name: "More", Picker: manifest.Picker{DefaultView: manifest.SearchView, RecentLimit: 2, RecentFilter: &manifest.RecentFilter{Tag: "news"}},
		Slots: []manifest.Slot{{Key: "news", Label: "News", Tag: "news"}, {Key: "a/b", Label: "Odd key", Tag: "#odd"}},
	})
	h.Publish("1", "The first", "#lead")
	h.Publish("2", "The second", "#second", "kept")
	h.Publish("3", "The third, on bridges")
	return h
}

// pastHistory is the history of a slot, which has times of its own.
var pastHistory = regexp.MustCompile(` History [0-9].*? (Change|Choose a post) for `)

// slots reads the notice above the slots, and the text of each slot.
func slots(page shown) (notice string, shown []string) {
	for n := range page.body.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if strings.Contains(attribute(n, "class"), "notice") {
			notice = textOf(n)
		}
		if strings.Contains(attribute(n, "class"), "panel slot") {
			shown = append(shown, pastHistory.ReplaceAllString(textOf(n), " $1 for "))
		}
	}
	return notice, shown
}

const (
	emptyNews = "News No post yet Choose a post for News"
	emptyOdd  = "Odd key No post yet Choose a post for Odd key"
	by        = " 4 May 2026, 14:00 UTC by Jane "
)

// filledWith is what a slot shows that one post fills.
func filledWith(label, title string) string {
	return label + " " + title + by + "Change for " + label + " Edit post " + title + " Clear " + label + " Move the post of " + label
}

// An editor chooses posts for slots, clears them, moves them, and takes each step back.
func TestCurationPage(t *testing.T) {
	h := newsroom(t)
	first, second := filledWith("Lead story", "The first"), filledWith("Second story", "The second")
	for _, step := range []struct {
		name   string
		fields []string // of the form that is sent
		notice string
		slots  []string
		held   map[string][]string
	}{
		{
			"choose",
			[]string{"slot", "top/lead", "post", "3"},
			"Lead story was filled. It is live now. View site (in another tab) Undo",
			[]string{filledWith("Lead story", "The third, on bridges"), second, emptyNews, emptyOdd},
			map[string][]string{"#lead": {"3"}, "#second": {"2"}, "kept": {"2"}},
		},
		{
			"undo",
			[]string{"slot", "top/lead", "post", "1"},
			"Lead story was filled. It is live now. View site (in another tab) Undo",
			[]string{first, second, emptyNews, emptyOdd},
			map[string][]string{"#lead": {"1"}, "#second": {"2"}, "kept": {"2"}},
		},
		{
			"clear",
			[]string{"slot", "top/lead", "post", ""},
			"Lead story is empty now. It is live now. View site (in another tab) Undo",
			[]string{"Lead story No post yet Choose a post for Lead story", second, emptyNews, emptyOdd},
			map[string][]string{"#second": {"2"}, "kept": {"2"}},
		},
		{
			"take that back",
			[]string{"slot", "top/lead", "post", "1"},
			"Lead story was filled. It is live now. View site (in another tab) Undo",
			[]string{first, second, emptyNews, emptyOdd},
			map[string][]string{"#lead": {"1"}, "#second": {"2"}, "kept": {"2"}},
		},
		{
			"change places",
			[]string{"slot", "top/lead", "with", "top/second"},
			"Lead story and Second story were swapped. It is live now. View site (in another tab) Undo",
			[]string{filledWith("Lead story", "The second"), filledWith("Second story", "The first"), emptyNews, emptyOdd},
			map[string][]string{"#lead": {"2"}, "#second": {"1"}, "kept": {"2"}},
		},
		{
			"move to an empty slot",
			[]string{"slot", "top/second", "with", "more/a%2Fb"},
			"Second story and Odd key were swapped. It is live now. View site (in another tab) Undo",
			[]string{filledWith("Lead story", "The second"), "Second story No post yet Choose a post for Second story", emptyNews, filledWith("Odd key", "The first")},
			map[string][]string{"#lead": {"2"}, "#odd": {"1"}, "kept": {"2"}},
		},
		{
			"a post that was deleted",
			[]string{"slot", "more/news", "post", "gone"},
			"News The post does not exist any more. Choose another.",
			[]string{filledWith("Lead story", "The second"), "Second story No post yet Choose a post for Second story", emptyNews, filledWith("Odd key", "The first")},
			map[string][]string{"#lead": {"2"}, "#odd": {"1"}, "kept": {"2"}},
		},
		{
			"another theme is active",
			[]string{"theme", "source", "slot", "more/news", "post", "1"},
			"Another theme was made the active one meanwhile. These are its slots.",
			[]string{filledWith("Lead story", "The second"), "Second story No post yet Choose a post for Second story", emptyNews, filledWith("Odd key", "The first")},
			map[string][]string{"#lead": {"2"}, "#odd": {"1"}, "kept": {"2"}},
		},
	} {
		fields := step.fields
		if fields[0] != "theme" {
			fields = append(fields, "theme", "nightly")
		}
		page := h.post("curation", "Editor", fields...)
		notice, shown := slots(page)
		if diff := cmp.Diff(step.slots, shown); diff != "" || notice != step.notice {
			t.Errorf("%s: %q, want %q: %s", step.name, notice, step.notice, diff)
		}
		if diff := cmp.Diff(step.held, h.Ghost.PostsByTag()); diff != "" {
			t.Errorf("%s: in Ghost: %s", step.name, diff)
		}
	}
}

// The form beside what was done takes it back.
func TestUndoRestoresTheSlots(t *testing.T) {
	for name, fields := range map[string][]string{
		"a choice":         {"slot", "top/lead", "post", "3"},
		"a cleared slot":   {"slot", "top/second", "post", ""},
		"a slot filled":    {"slot", "more/news", "post", "3"},
		"changed places":   {"slot", "top/lead", "with", "top/second"},
		"a move":           {"slot", "top/lead", "with", "more/a%2Fb"},
		"a choice in vain": {"slot", "top/lead", "post", "1"},
	} {
		h := newsroom(t)
		before := h.Ghost.PostsByTag()
		page := h.post("curation", "Editor", append(fields, "theme", "nightly")...)
		var undo []string
		for form := range elements(page.body, "form") {
			if textOf(form) == "Undo" {
				for input := range elements(form, "input") {
					undo = append(undo, attribute(input, "name"), attribute(input, "value"))
				}
			}
		}
		if len(undo) == 0 {
			t.Errorf("%s: cannot be undone", name)
			continue
		}
		h.post("curation", "Editor", undo...)
		if diff := cmp.Diff(before, h.Ghost.PostsByTag()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The picker offers what the manifest says: the newest posts or a search, of published posts
// with a tag or of all.
func TestPickerOffersWhatTheManifestSays(t *testing.T) {
	h := newsroom(t)
	for i, title := range []string{"Bridges, old", "Bridges, new", "Roads"} {
		h.Publish("n"+title, title, "news")
		if i == 0 {
			h.Ghost.Posts[0].Status = "draft"
		}
	}
	h.Ghost.Tags["nRoads"] = []string{"news", "other"}
	offered := func(target string) (said string, titles []string) {
		t.Helper()
		page := h.get("curation?slot="+target, "Editor")
		page.text(t)
		for n := range page.body.Descendants() {
			switch attribute(n, "class") {
			case "found":
				said = textOf(n)
			case "title":
				titles = append(titles, textOf(n))
			}
		}
		for a := range elements(page.body, "a") {
			if attribute(a, "aria-current") == "true" {
				said = textOf(a) + ": " + said
			}
		}
		return said, titles
	}
	for target, want := range map[string][]string{
		"top/lead":                                  {"Recent: 5 posts", "Roads", "Bridges, new", "The third, on bridges", "The second", "The first"},
		"top/lead&view=search":                      {"Search: "},
		"top/lead&view=search&q=BRIDGES":            {"Search: 2 posts", "Bridges, new", "The third, on bridges"},
		"top/lead&view=search&q=+on++bridges+":      {"Search: 1 post", "The third, on bridges"},
		"top/lead&view=search&q=tunnels":            {"Search: No published post has all these words in its title."},
		"top/lead&view=all":                         {"Recent: 5 posts", "Roads", "Bridges, new", "The third, on bridges", "The second", "The first"},
		"more/news":                                 {"Search: "},
		"more/news&view=recent":                     {"Recent: 2 posts", "Roads", "Bridges, new"},
		"more/news&view=search&q=third":             {"Search: No published post with that tag has all these words in its title."},
		"more/a%252Fb&view=recent":                  {"Recent: 2 posts", "Roads", "Bridges, new"},
		"more/news&view=search&q=" + "%F0%9F%8C%89": {"Search: No published post with that tag has all these words in its title."},
	} {
		said, titles := offered(target)
		if diff := cmp.Diff(want, append([]string{said}, titles...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	for _, target := range []string{"top/none", "none/lead", "top", "%252", "top/lead/more"} {
		page := h.get("curation?slot="+target, "Editor")
		if page.Status != 404 || page.Text != "The active theme has no such slot. Go back to Homepage Curation." {
			t.Errorf("slot %s: got status %d, %s, want 404, that the theme has no such slot", target, page.Status, page.Text)
		}
	}
}

// A slot with a tag that readers see, and several posts carry, asks before it takes the tag
// from all of them, also where two slots change places.
func TestSeveralHolders(t *testing.T) {
	h := newsroom(t)
	h.Publish("4", "Older news", "news")
	h.Publish("5", "Newer news", "news")
	before := h.Ghost.PostsByTag()
	const several = "2 posts carry this tag, which readers see. Choosing a post takes it from all others: confirm that, or take it from them in the platform's admin first."
	for name, fields := range map[string][]string{
		"choose":                    {"slot", "more/news", "post", "1"},
		"clear":                     {"slot", "more/news", "post", ""},
		"change places":             {"slot", "more/news", "with", "top/lead"},
		"change places, from there": {"slot", "top/lead", "with", "more/news"},
	} {
		notice, _ := slots(h.post("curation", "Editor", append(fields, "theme", "nightly")...))
		if !strings.HasSuffix(notice, several) {
			t.Errorf("%s: got notice %q, want it to end with %q", name, notice, several)
		}
		if diff := cmp.Diff(before, h.Ghost.PostsByTag()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, shown := slots(h.get("curation", "Editor"))
	want := "News Newer news" + by + "2 posts carry the tag of this slot. The homepage shows the newest. Newer news" + by + "Older news" + by +
		"Readers see this tag: take it from 2 posts Keep the newest alone Clear: take the tag from all 2 Change for News Edit post Newer news Move the post of News"
	if diff := cmp.Diff(want, shown[2]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text := h.get("curation?slot=more/news&view=recent", "Editor").text(t); !strings.Contains(text, "Take the tag from 2 posts") {
		t.Errorf("the picker does not say it: %s", text)
	}
	if notice, _ := slots(h.post("curation", "Editor", "theme", "nightly", "slot", "more/news", "post", "5", "from_all", "on")); notice != "News was filled. It is live now. View site (in another tab) Undo" {
		t.Errorf("keep the newest: %q", notice)
	}
	before["news"] = []string{"5"}
	if diff := cmp.Diff(before, h.Ghost.PostsByTag()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// A tag that readers do not see is not asked about.
	h.Publish("6", "Another lead", "#lead")
	_, shown = slots(h.get("curation", "Editor"))
	if !strings.Contains(shown[0], "2 posts carry the tag") || strings.Contains(shown[0], "Readers see this tag") {
		t.Errorf("of #lead: %s", shown[0])
	}
	if text := h.get("curation?slot=top/lead&view=recent", "Editor").text(t); strings.Contains(text, "Take the tag from") {
		t.Errorf("the picker asks: %s", text)
	}
	if notice, _ := slots(h.post("curation", "Editor", "theme", "nightly", "slot", "top/lead", "post", "3")); notice != "Lead story was filled. It is live now. View site (in another tab) Undo" {
		t.Errorf("several of #lead: %q", notice)
	}
}

// All other slots are offered to move a post to, with what they hold.
func TestPostsCanMoveToAllOtherSlots(t *testing.T) {
	h := newsroom(t)
	const want = "All slots Move the post of Lead story The first" + by + "Swap it with the post of another slot, or move it to an empty one. " +
		"Top stories Second story The second Swap with Second story More News No post yet Move here to News Odd key No post yet Move here to Odd key"
	page := h.get("curation?slot=top/lead&move=", "Editor")
	if diff := cmp.Diff(want, page.text(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var forms []url.Values
	for form := range elements(page.body, "form") {
		fields := url.Values{}
		for n := range form.Descendants() {
			if name := attribute(n, "name"); name != "" {
				fields.Add(name, attribute(n, "value"))
			}
		}
		forms = append(forms, fields)
	}
	of := func(with string) url.Values {
		return url.Values{"theme": {"nightly"}, "slot": {"top/lead"}, "with": {with}}
	}
	if diff := cmp.Diff([]url.Values{of("top/second"), of("more/news"), of("more/a%2Fb")}, forms); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if page := h.get("curation?slot=none/lead&move=", "Editor"); page.Status != 404 {
		t.Errorf("a slot that is not there: %d", page.Status)
	}
}

// An editor is told that the homepage shows nothing for a slot, and since when: its post has been
// unpublished, or is not published yet.
func TestSlotsThatReadersDoNotSee(t *testing.T) {
	h := newsroom(t)
	before, changed := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), time.Date(2026, 5, 6, 9, 30, 0, 0, time.UTC)
	for _, test := range []struct {
		status             string
		published, updated time.Time
		want               string
	}{
		{"published", before, changed, ""},
		{"draft", before, changed, "Not on the homepage now: the post is a draft, since 6 May 2026, 09:30 UTC at the latest. "},
		{"draft", before, time.Time{}, "Not on the homepage now: the post is a draft. "},
		{"draft", time.Time{}, changed, "Not on the homepage now: the post is a draft, and was never published. "},
		{"scheduled", changed, before, "Not on the homepage now: the post is scheduled for 6 May 2026, 09:30 UTC. "},
		{"sent", before, changed, "Not on the homepage: the post was sent by email only. "},
	} {
		i := slices.IndexFunc(h.Ghost.Posts, func(p platform.Post) bool { return p.ID == "1" })
		h.Ghost.Posts[i].Status, h.Ghost.Posts[i].PublishedAt, h.Ghost.Posts[i].UpdatedAt = test.status, test.published, test.updated
		_, shown := slots(h.get("curation", "Editor"))
		if want := "Lead story " + test.want + "The first"; !strings.HasPrefix(strings.ReplaceAll(shown[0], " .", "."), want) {
			t.Errorf("%s: got %q, want %q at its beginning", test.status, shown[0], want)
		}
	}
}

// The homepage is a link away, before anything was done.
func TestViewHomepage(t *testing.T) {
	h := newsroom(t)
	for admin, want := range map[string]string{"/ghost": "/", "/blog/ghost": "/blog/"} {
		h.Desk.Path = admin
		var got []string
		for a := range elements(h.read(h.ask("GET", admin+"/lychgate/desk/curation", "Editor", "")).body, "a") {
			if strings.HasPrefix(textOf(a), "View homepage") {
				got = append(got, attribute(a, "href"))
			}
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", admin, diff)
		}
	}
}

// What Ghost does not take yet is kept and shown, and sent to it once it responds.
func TestPendingMoves(t *testing.T) {
	h := newsroom(t)
	h.Ghost.BreakCalls(desktest.ErrGone, "tag", "untag")
	notice, shown := slots(h.post("curation", "Editor", "theme", "nightly", "slot", "top/lead", "post", "3"))
	if want := "Lead story is kept, and sent to Ghost as soon as it responds. Undo"; notice != want {
		t.Errorf("%q, want %q", notice, want)
	}
	if want := "Lead story Kept, and sent to Ghost as soon as it responds. " + platform.ReasonUnanswered + " The first"; !strings.HasPrefix(shown[0], want) {
		t.Errorf("%q, want %q", shown[0], want)
	}
	h.Ghost.Fix()
	wait.Until(t, func() string {
		_, shown := slots(h.get("curation", "Editor"))
		return cmp.Diff(filledWith("Lead story", "The third, on bridges"), shown[0])
	})
}

// The page says why it has no slots, and that they are not those of the latest manifest.
func TestInactiveCuration(t *testing.T) {
	h := newHarness(t)
	inactive := "Homepage Curation is inactive: it starts with a manifest that has it and no finding."
	says := func(name string, status int, text string) {
		t.Helper()
		if page := h.get("curation", "Editor"); page.Status != status || !strings.HasPrefix(page.Text, text) {
			t.Errorf("%s: got status %d, %s, want %d, %s", name, page.Status, page.Text, status, text)
		}
	}
	says("no manifest", 404, "The theme has no manifest.")
	h.Manifest("nightly", "manifest_version: 1\nevents: {types: {webinar: {post_template: custom-webinar}}}")
	says("no curation", 404, inactive)
	h.Manifest("nightly", "manifest_version: 1\nevents:\n"+curated)
	says("findings from the start", 404, inactive)
	h.Manifest("nightly", "manifest_version: 1\n"+curated)
	says("active", 200, "View homepage (in another tab) Top Lead No post yet")
	h.Manifest("nightly", "manifest_version: 1\nevents:\n"+curated)
	says("findings", 200, "The latest manifest of this theme has findings, so this page goes on with the last one that had none. See the findings View homepage (in another tab) Top Lead")
}

// A link that somebody made up says of nothing that it was done, and offers no Undo.
func TestLinkToWhatWasDone(t *testing.T) {
	h := newsroom(t)
	for site, want := range map[string]string{"same-origin": "Lead story was filled. It is live now. View site (in another tab) Undo", "same-site": "", "none": "", "cross-site": ""} {
		got, _ := slots(h.read(h.ask("GET", path+"curation?done=top/lead&was=3&now=1", "Editor", "",
			"Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")))
		if got != want {
			t.Errorf("Sec-Fetch-Site %s: got notice %q, want %q", site, got, want)
		}
	}
}

// Two slots have changed places also if the editor closes the tab before Ghost has the first change.
func TestSwapAfterTheTabIsClosed(t *testing.T) {
	h := newsroom(t)
	waiting, release := h.Ghost.Hold("tag")
	ctx, closeTab := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "https://news.example.com"+path+"curation", strings.NewReader(formOf("slot", "top/lead", "with", "top/second", "theme", "nightly")))
	r.Header.Set("Cookie", "Editor")
	r.Header.Set("Origin", "https://news.example.com")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ended := make(chan struct{})
	go func() {
		h.Desk.Serve(httptest.NewRecorder(), r, h.Site, netip.MustParseAddr("192.0.2.1"))
		close(ended)
	}()
	<-waiting
	closeTab()
	<-ended
	release()
	want := map[string][]string{"#lead": {"2"}, "#second": {"1"}, "kept": {"2"}}
	wait.Until(t, func() string { return cmp.Diff(want, h.Ghost.PostsByTag()) })
}

// More than the staff of a site can ask at once waits for nothing: the page says so.
func TestManyPagesAtOnce(t *testing.T) {
	h := newsroom(t)
	var ends []func()
	for {
		end, err := h.Site.Begin()
		if err != nil {
			break
		}
		ends = append(ends, end)
	}
	got := h.get("curation", "Editor")
	if len(ends) != 16 || got.Status != http.StatusTooManyRequests || !strings.HasPrefix(got.Text, "Too many requests of the staff at once. Try again in 1 s.") {
		t.Errorf("behind %d: %d %s", len(ends), got.Status, got.Text)
	}
	if got := h.ask("POST", path+"curation", "Editor", "%zz"); got.Code != http.StatusTooManyRequests { // not what is wrong with the form
		t.Errorf("a form: %d, want %d before it is read", got.Code, http.StatusTooManyRequests)
	}
	for _, end := range ends {
		end()
	}
	if got := h.get("curation", "Editor"); got.Status != http.StatusOK {
		t.Errorf("afterwards: %d", got.Status)
	}
}

// Somebody who activates a theme on the page of themes goes on to its slots, not to those of
// the theme before.
func TestSlotsAreThoseOfTheActivatedTheme(t *testing.T) {
	h := newsroom(t)
	before := h.get("curation", "Editor").Status
	h.Ghost.Themes = []platform.InstalledTheme{{Name: "nightly"}, {Name: "source", IsActive: true}}
	h.get("themes", "Editor") // as its script does
	after := h.get("curation", "Editor")
	if before != 200 || after.Status != 404 {
		t.Errorf("before %d, then %d: %s", before, after.Status, after.Text)
	}
}
