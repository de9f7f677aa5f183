package pages

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// maxPicture bounds a picture of the docs, in bytes.
const maxPicture = 100 << 10

// docsPictures are the pictures of docs/homepage_curation.md: how each page is reached, and
// what it has to show, so that a page that has changed is seen here.
var docsPictures = []struct{ name, address, do, until, shows string }{
	{
		"slots", "curation", "", "$('.slots')",
		"View homepage (in another tab) Top stories What readers see first. Lead story The old lychgate is painted 4 May 2026, 14:00 by Jane Change for Lead story Edit post The old lychgate is painted Clear Lead story Move the post of Lead story " +
			"Second story A choir for everybody 4 May 2026, 14:00 by Jane Change for Second story Edit post A choir for everybody Clear Second story Move the post of Second story " +
			"Third story No post yet Choose a post for Third story",
	},
	{
		"search", "curation?slot=top/third", "$('#q').value = 'bridges'; $('#q').dispatchEvent(new Event('input', {bubbles: true}))", "text($('.found')) === '2 posts'",
		"All slots Choose a post for Third story Only published posts are offered. Recent Search Words in the title Search 2 posts " +
			"Bridges of the south 4 May 2026, 14:00 by Jane Choose Bridges of the south Bridges of the north 4 May 2026, 14:00 by Jane Choose Bridges of the north",
	},
	{
		"done", "curation?slot=top/third&view=search&q=bridges", "$('.posts button').click()", "$('.notice.done')",
		"Third story was filled. It is live now. View site (in another tab) Undo Top stories What readers see first. Lead story The old lychgate is painted 4 May 2026, 14:00 by Jane Change for Lead story Edit post The old lychgate is painted Clear Lead story Move the post of Lead story " +
			"Second story A choir for everybody 4 May 2026, 14:00 by Jane Change for Second story Edit post A choir for everybody Clear Second story Move the post of Second story " +
			"Third story Bridges of the south 4 May 2026, 14:00 by Jane History Just now : Edda chose Bridges of the south Change for Third story Edit post Bridges of the south Clear Third story Move the post of Third story",
	},
}

// small reduces a PNG to its 256 most frequent colours.
func small(t *testing.T, picture []byte) []byte {
	t.Helper()
	whole, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatalf("png.Decode: %v", err)
	}
	bounds, count := whole.Bounds(), make(map[color.Color]int)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[whole.At(x, y)]++
		}
	}
	palette := color.Palette(slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] }))
	few := image.NewPaletted(bounds, palette[:min(len(palette), 256)])
	draw.Draw(few, bounds, whole, bounds.Min, draw.Src)
	var file bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&file, few); err != nil {
		t.Fatalf("(&png.Encoder{CompressionLevel: png.BestCompression}).Encode: %v", err)
	}
	return file.Bytes()
}

// The pictures that show an editor the way are of the pages as they are. With
// LYCHGATE_TEST_PICTURES they are taken anew, to be copied into docs/.
func TestPicturesOfDocs(t *testing.T) {
	if browser.Name() != "chromium" {
		t.Skip("the pictures are of Chromium")
	}
	r := open(t)
	r.Ghost.Posts, r.Ghost.Tags = nil, map[string][]string{}
	slot := func(key, label string) manifest.Slot { return manifest.Slot{Key: key, Label: label, Tag: "#" + key} }
	r.Declare(manifest.Section{
		Key: "top", Name: "Top stories", Description: "What readers see first.", Picker: manifest.Picker{DefaultView: manifest.SearchView, RecentLimit: 20},
		Slots: []manifest.Slot{slot("lead", "Lead story"), slot("second", "Second story"), slot("third", "Third story")},
	})
	r.Ghost.Themes = []platform.InstalledTheme{{Name: "nightly", IsActive: true}}
	for i, post := range [][]string{{"Bridges of the north"}, {"Bridges of the south"}, {"A choir for everybody", "#second"}, {"The old lychgate is painted", "#lead"}} {
		r.Publish(strconv.Itoa(i), post[0], post[1:]...)
		r.Ghost.Posts[0].Picture = r.url + "/content/images/" + strings.Repeat("x", i) + ".png"
		r.Ghost.Posts[0].PublishedAt = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) // which is 14:00 in the site's time zone
	}
	v := r.visit("Editor", "curation", docsLook)
	for _, picture := range docsPictures {
		v.goTo(picture.address)
		v.Do("%s", picture.do)
		v.Until(picture.until)
		v.picture(t, "homepage_curation_"+picture.name, "$('desk-page')", picture.shows)
	}
}

// docsLook is how pictures of the docs are taken.
var docsLook = browser.Look{Width: 1120, Height: 600, Media: map[string]string{"prefers-color-scheme": "light"}}

// picture compares the text of an element with what a picture of the docs shows, but for when
// somebody did what its history says, and takes
// the picture anew if that is asked for.
func (v tab) picture(t *testing.T, name, element, shows string) {
	t.Helper()
	diff(t, name, shows, js[string](v, fmt.Sprintf(`(() => {
		const words = [], walk = document.createTreeWalker(%s, NodeFilter.SHOW_TEXT);
		while (walk.nextNode()) if (walk.currentNode.parentElement.localName !== 'h1') words.push(walk.currentNode.data);
		return words.join(' ').replace(/\s+/g, ' ').replace(/ ([.,])/g, '$1').replace(/\d+ \w+ \d{4}, \d\d:\d\d(?= :)/g, 'Just now').trim();
	})()`, element)))
	v.Do("await Promise.all([...document.images].map(i => i.decode()))")
	v.Do("document.activeElement.blur(); scrollTo(0, 0)") // a slot that was filled was scrolled to
	if folder := os.Getenv("LYCHGATE_TEST_PICTURES"); folder != "" {
		taken, err := v.Screenshot()
		v.Must(err)
		v.Must(os.WriteFile(filepath.Join(folder, name+".png"), small(t, taken), 0o644))
	}

	file, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name+".png"))
	if err != nil {
		t.Errorf("os.ReadFile: %v", err)
		return
	}
	config, err := png.DecodeConfig(bytes.NewReader(file))
	if err != nil || len(file) > maxPicture || config.Width != 2240 || config.Height != 1200 {
		t.Errorf("docs/%s.png: %d bytes, %d by %d, %v", name, len(file), config.Width, config.Height, err)
	}
}

// landscape draws a hill below the sky.
func landscape(width, height int) image.Image {
	drawn := image.NewRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		across := float64(x) / float64(width)
		hill := int(float64(height) * (.62 - .18*math.Sin(across*math.Pi) + .04*math.Sin(across*9)))
		for y := range height {
			shade := uint8(min(y, hill) * 40 / height * 2) // few shades make a small file
			drawn.Set(x, y, color.RGBA{120 + shade, 170 + shade, 225, 255})
			if y > hill {
				drawn.Set(x, y, color.RGBA{86, 132, 74, 255})
			}
		}
	}
	return drawn
}

// The pictures of docs/events.md are of the pages as they are.
func TestPicturesOfEvents(t *testing.T) {
	if browser.Name() != "chromium" {
		t.Skip("the pictures are of Chromium")
	}
	r := open(t).withParties()
	party, err := r.Site.Events.Type(t.Context(), "nightly", "party")
	if err != nil {
		t.Fatalf("r.Site.Events.Type: %v", err)
	}
	for _, event := range [][]string{{"The lychgate is painted", "2100-05-04", "10:00"}, {"Choir practice for everybody", "2100-05-12", "19:30"}, {"Summer party", "2100-06-19", ""}} {
		values := map[string]any{"name": event[0], "event_date": event[1], "menu": "Cake"}
		if event[2] != "" {
			values["event_time_start"], values["event_time_zone"], values["access"], values["max_attendees"] = event[2], "Europe/Berlin", "free", 120.0
		}
		if _, err := r.Events.Publish(t.Context(), "daily", r.create(t, values).ID, 0, party); err != nil {
			t.Fatalf("r.Events.Publish: %v", err)
		}
	}
	v := r.visit("Editor", "events", docsLook)
	v.Until("$('table')")
	v.picture(t, "events_list", "$('desk-page')", "New event Event Settings Words in the name Type All types Meetup (0) Summer party (3) Month All months June 2100 (1) May 2100 (2) Show "+
		"Upcoming 3 Past 0 Drafts 0 All 3 Month 3 events. Times are in Europe/Berlin, the time zone of the site. Event Date Type Status Guests Actions "+
		"The lychgate is painted Date 4 May 2100, 10:00 Type Summer party Status Published Guests 0 of 120 for The lychgate is painted Edit text of The lychgate is painted View The lychgate is painted "+
		"Choir practice for everybody Date 12 May 2100, 19:30 Type Summer party Status Published Guests 0 of 120 for Choir practice for everybody Edit text of Choir practice for everybody View Choir practice for everybody "+
		"Summer party Date 19 Jun 2100 Type Summer party Status Published Edit text of Summer party View Summer party")
	choir := js[string](v, "[...document.querySelectorAll('.events a')].find(a => text(a).startsWith('Choir')).search")
	v.goTo("events" + choir + "&confirm=duplicate")
	v.Until("button('Duplicate the event')")
	v.Do("$('#copy-until').value = '2100-07-14'")
	v.picture(t, "events_series", "$('.panel')", "Duplicate Choir practice for everybody ? A new draft gets what this event has, without its slug, on another date. "+
		"This event stays as it is. The new one gets a post of its own. Date of the copy How often Every week Every second week Every second Wednesday of a month Until "+
		"Leave it empty for one copy. Otherwise there is a draft for each such day up to this date, 52 at most. They are a series with this event, and can be published together. "+
		"Duplicate the event Leave it as it is")
	v.goTo("event-settings")
	v.Until("button('Save settings')")
	v.picture(t, "events_settings", "$('.message-row')", "Can register For a member who may register. Newsletters and readers without JavaScript have it too, as the link to the event's page. "+
		"Without a text readers see: Du kannst dich für diese Veranstaltung anmelden. Du kannst dich für diese Veranstaltung anmelden. Anmelden")
	v.goTo("events?new=party")
	v.typed("name", "Harvest supper")
	v.state("Saved at ")
	v.Until("text($('desk-page .event-head')).endsWith('Draft')")
	v.picture(t, "events_editor", "$('desk-page .event-head')", "Harvest supper Draft")
	v.choose("feature_image", "sky.png", asPNG(t, landscape(1600, 1200)))
	v.Until("$('dialog.crop')?.open")
	v.picture(t, "events_crop", "$('dialog.crop')", "Crop Image Recommended: 1600px wide, 900px tall, 16:9 aspect ratio "+
		"Drag the frame and its corners, or use the arrow keys; with Shift they go further. 1600 × 900 px Use this part Cancel")
}

// The pictures of docs/registration.md are of the pages as they are.
func TestPicturesOfRegistration(t *testing.T) {
	if browser.Name() != "chromium" {
		t.Skip("the pictures are of Chromium")
	}
	r := open(t).withParties()
	id := r.withEvent(t, 120)
	var members []string
	for i, name := range []string{"Ada Byron", "Ben Quay", "Jane Doe", "Özlem Ångström"} {
		email := strings.ToLower(strings.Fields(name)[0]) + "@example.com"
		if i == 3 {
			email = "oezlem@example.com"
		}
		members = append(members, r.withGuest(t, id, email, name))
	}
	if _, err := r.DB.Write.ExecContext(t.Context(), `UPDATE registrations SET registered_at = $1, added_by = ''`, desktest.Now.UnixMilli()); err != nil {
		t.Fatalf("r.DB.Write.ExecContext: %v", err)
	}
	if _, err := r.Guests.Remove(t.Context(), "daily", id, members[1], "Jane"); err != nil {
		t.Fatalf("r.Guests.Remove: %v", err)
	}
	r.door(t, id, members[0], true)
	if _, err := r.DB.Write.ExecContext(t.Context(), `UPDATE registrations SET cancelled_at = cancelled_at * 0 + $1, checked_in_at = checked_in_at * 0 + $1`, desktest.Now.UnixMilli()); err != nil {
		t.Fatalf("r.DB.Write.ExecContext: %v", err)
	}
	v := r.visit("Editor", "guest-list?event="+id, docsLook)
	v.Until("$('.guests')")
	v.picture(t, "registration_guests", "$('.guests')", "Guest Registered Status Actions "+
		"Ada Byron ada@example.com Registered 4 May 2026, 15:00 Status Checked in 4 May 2026, 15:00 Remove Ada Byron "+
		"Ben Quay ben@example.com Registered 4 May 2026, 15:00 Status Cancelled 4 May 2026, 15:00 by Jane Register again : Ben Quay "+
		"Jane Doe jane@example.com Registered 4 May 2026, 15:00 Status Registered Remove Jane Doe "+
		"Özlem Ångström oezlem@example.com Registered 4 May 2026, 15:00 Status Registered Remove Özlem Ångström")
	v.goTo("check-in?event=" + id)
	v.Until("$('.door-list [data-member]')")
	v.picture(t, "registration_check_in", "$('.door-list')", "Ada Byron ada@example.com Checked in 15:00 Undo : Ada Byron "+
		"Jane Doe jane@example.com Check in Jane Doe Özlem Ångström oezlem@example.com Check in Özlem Ångström")
}
