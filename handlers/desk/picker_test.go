package desk_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// The picker says which of the posts are on the homepage already, and where. Ghost is not
// asked for each of them.
func TestPickerMarksTheHomepage(t *testing.T) {
	h := newsroom(t)
	h.Publish("4", "Older news", "news")
	h.Publish("5", "Newer news", "news", "#lead") // of which the homepage shows this one, twice
	calls := make(map[string]int)
	h.Ghost.Fail(func(call, _ string) error {
		calls[call]++
		return nil
	})
	want := map[string]string{
		"Newer news": "On the homepage: Lead story, News", "Older news": "", "The third, on bridges": "",
		"The second": "On the homepage: Second story", "The first": "",
	}
	for target, offered := range map[string][]string{
		"top/lead&view=recent":            {"Newer news", "Older news", "The third, on bridges", "The second", "The first"},
		"top/second&view=search&q=second": {"The second"},
		"more/news&view=recent":           {"Newer news", "Older news"},
	} {
		clear(calls)
		page := h.get("curation?slot="+target, "Editor")
		wanted, got := make(map[string]string), make(map[string]string)
		title := ""
		for n := range page.body.Descendants() {
			switch attribute(n, "class") {
			case "title":
				title = textOf(n)
				got[title] = ""
			case "filling":
				got[title] = strings.ReplaceAll(textOf(n), " ,", ",")
			}
		}
		for _, title := range offered {
			wanted[title] = want[title]
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
		if diff := cmp.Diff(map[string]int{"tagged": 1, "published": 1}, map[string]int{"tagged": calls["tagged"], "published": calls["published"]}); diff != "" || calls["post"] > 0 {
			t.Errorf("%s: asked of Ghost: %v", target, calls)
		}
	}
}

// A post that fills very many slots keeps the page small.
func TestPostThatFillsManySlots(t *testing.T) {
	h := newHarness(t)
	section := manifest.Section{Key: "top", Name: "Top", Picker: manifest.Picker{DefaultView: manifest.RecentView, RecentLimit: 5}}
	var tags []string
	for i := range 40 {
		tags = append(tags, fmt.Sprint("#slot-", i))
		section.Slots = append(section.Slots, manifest.Slot{Key: strconv.Itoa(i), Label: fmt.Sprint("Slot ", i), Tag: tags[i]})
	}
	h.Declare(section)
	h.Publish("1", "Everywhere", tags...)
	text := h.get("curation?slot=top/7", "Editor").text(t)
	if want := "On the homepage: Slot 0 , Slot 1 , Slot 2 and 37 more Choose"; !strings.Contains(text, want) {
		t.Errorf("%s, without %q", text, want)
	}
}

// The picker offers as many of the newest posts as the section declares, of those with its tag.
func TestPickerOffersAsManyAsDeclared(t *testing.T) {
	h := newsroom(t)
	for _, id := range []string{"4", "5", "6"} {
		h.Publish(id, "News no. "+id, "news")
	}
	page := h.get("curation?slot=more/news&view=recent", "Editor")
	for title, want := range map[string]bool{"News no. 6": true, "News no. 5": true, "News no. 4": false, "The first": false} {
		if got := strings.Contains(page.Text, title); got != want {
			t.Errorf("%s is offered: %t, want %t: %s", title, got, want, page.Text)
		}
	}
}

// The picker says which posts it offers.
func TestPickerSaysWhatItOffers(t *testing.T) {
	h := newsroom(t)
	for slot, want := range map[string]string{
		"top/lead":  "Choose a post for Lead story Only published posts are offered. Recent",
		"more/news": "Choose a post for News Only published posts with the tag news are offered. Recent",
	} {
		if text := h.get("curation?slot="+slot, "Editor").text(t); !strings.Contains(text, want) {
			t.Errorf("slot %s: got %s, want %s in it", slot, text, want)
		}
	}
}

// After a choice the site itself is a link away, also in a subdirectory, unless Ghost does
// not have the choice yet.
func TestViewSite(t *testing.T) {
	for admin, want := range map[string]string{"/ghost": "/", "/blog/ghost": "/blog/", "/a/b/ghost": "/a/b/"} {
		h := newsroom(t)
		h.Desk.Path = admin
		links := func() (links []string) {
			form := "theme=nightly&slot=top%2Flead&post=3"
			to := h.ask("POST", admin+"/lychgate/desk/curation", "Editor", form).Header().Get("Location")
			for a := range elements(h.read(h.ask("GET", to, "Editor", "")).body, "a") {
				if strings.HasPrefix(textOf(a), "View site") {
					links = append(links, attribute(a, "href"))
				}
			}
			return links
		}
		if diff := cmp.Diff([]string{want}, links()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", admin, diff)
		}
		h.Ghost.BreakCalls(desktest.ErrGone, "tag", "untag")
		h.Ghost.Mu.Lock()
		h.Ghost.Tags["3"] = []string{}
		h.Ghost.Mu.Unlock()
		if diff := cmp.Diff([]string(nil), links()); diff != "" {
			t.Errorf("%s, pending: %s", admin, diff)
		}
	}
}

// pickerShown counts the posts that the picker offers. The keys of links are their texts, the
// values their addresses.
func (h *harness) pickerShown(target string) (offered int, links map[string]string) {
	links = make(map[string]string)
	for n := range h.get(target, "Editor").body.Descendants() {
		if attribute(n, "class") == "title" {
			offered++
		}
		if n.Data == "a" {
			links[textOf(n)] = attribute(n, "href")
		}
	}
	return offered, links
}

// A search that finds many posts shows more of them, until the page has as many as it may.
func TestMorePosts(t *testing.T) {
	h := newsroom(t)
	for i := range 100 {
		h.Publish(strconv.Itoa(100+i), fmt.Sprint("A naïve evening ", i))
	}
	target := "curation?slot=top/lead&view=search&q=naive"
	var got []int
	for target != "" && len(got) < 10 {
		offered, links := h.pickerShown(target)
		got = append(got, offered)
		target = links["More posts"]
	}
	if diff := cmp.Diff([]int{20, 40, 60, 80}, got); diff != "" {
		t.Errorf("posts that are offered (-want +got):\n%s", diff)
	}
	if text := h.get("curation?slot=top/lead&view=search&q=naive&most=80", "Editor").text(t); !strings.HasSuffix(text, " There are more. Type another word.") {
		t.Errorf("got %q, want it to say that there are more", text)
	}
	for _, most := range []string{"-1", "x", "1000000"} {
		if offered, _ := h.pickerShown("curation?slot=top/lead&view=search&q=naive&most=" + most); offered != 20 && offered != 80 {
			t.Errorf("most=%s: got %d posts, want 20 or 80", most, offered)
		}
	}
}

// An editor who looks for an article has the posts of events out of the way.
func TestRecentWithoutEvents(t *testing.T) {
	h := newsroom(t)
	h.declareEvents()
	e := h.publish(map[string]any{"name": "Summer party", "menu": "Cake", "event_date": "2100-06-01"})
	h.Declare(desktest.Top)
	h.Publish(e.Post.ID, "Summer party")
	before, links := h.pickerShown("curation?slot=top/lead&view=recent")
	without := links["Leave out events"]
	after, links := h.pickerShown(without)
	again, _ := h.pickerShown(links["Show events too"])
	if diff := cmp.Diff([]int{4, 3, 4}, []int{before, after, again}); diff != "" {
		t.Errorf("posts with events, without and with (-want +got):\n%s", diff)
	}
	if text := h.get(without, "Editor").text(t); strings.Contains(text, "Summer party") {
		t.Errorf("got %q, want no post of an event", text)
	}
	h.Site.OfEvents = nil
	if _, links := h.pickerShown("curation?slot=top/lead&view=recent"); links["Leave out events"] != "" {
		t.Errorf("a site without events: got the link %q to leave them out, want none", links["Leave out events"])
	}
}
