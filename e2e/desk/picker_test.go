package desk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// photo has a camera's size and noise, so that it does not compress well.
func photo(t testing.TB) []byte {
	t.Helper()
	const width, height = 2400, 1600
	drawn, noise := image.NewRGBA(image.Rect(0, 0, width, height)), rand.New(rand.NewPCG(1, 2))
	for y := range height {
		for x := range width {
			grain := uint8(noise.UintN(24))
			drawn.SetRGBA(x, y, color.RGBA{uint8(x*200/width) + grain, uint8(y*200/height) + grain, 120 + grain, 255})
		}
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, drawn, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatalf("jpeg.Encode: %v", err)
	}
	return file.Bytes()
}

// upload uploads a picture to Ghost, as its editor does, and returns its address.
func (c *caller) upload(name string, file []byte) (address string) {
	c.site.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf("form-data; name=file; filename=%q", name)}, "Content-Type": {"image/jpeg"},
	})
	if err == nil {
		_, err = io.Copy(part, bytes.NewReader(file))
	}
	if err != nil || form.Close() != nil {
		c.site.t.Fatalf("form.CreatePart: %v", err)
	}
	status, text := c.ask("POST", "/ghost/api/admin/images/upload/", form.FormDataContentType(), &body)
	var uploaded struct{ Images []struct{ URL string } }
	if err := json.Unmarshal([]byte(text), &uploaded); err != nil || len(uploaded.Images) != 1 {
		c.site.t.Fatalf("uploading %s: got %d %s, want the address of a picture", name, status, text)
	}
	return uploaded.Images[0].URL
}

// publishEvent publishes an event of the theme slots.
func (c *caller) publishEvent(name string) {
	c.site.t.Helper()
	const path = "/ghost/lychgate/desk/events"
	status, body := c.ask("POST", path, "application/json", strings.NewReader(
		fmt.Sprintf(`{"theme": "slots", "type": "party", "values": {"name": %q, "event_date": "2100-06-01"}}`, name)))
	var event struct{ ID string }
	if err := json.Unmarshal([]byte(body), &event); err != nil || status != http.StatusCreated {
		c.site.t.Fatalf("making an event: got %d %s, want 201", status, body)
	}
	c.ask("POST", path+"/"+event.ID+"/publish", "", nil)
	wait.Until(c.site.t, func() string { // a slow Ghost has its post later
		if status, body := c.ask("GET", path+"/"+event.ID, "", nil); !strings.Contains(body, `"pending":null`) {
			return fmt.Sprintf("the event has no post: %d %s", status, body)
		}
		return ""
	})
}

// pickAmongMany has an editor find a post for the slot Lead among many, in all ways that the picker
// has, and choose it.
func (s *site) pickAmongMany(editor string, staff *caller) {
	s.t.Helper()
	whole := photo(s.t)
	staff.json("POST", "/posts/", map[string]any{"posts": []any{map[string]any{
		"title": "Naïve walks down Garden Straße", "status": "published", "feature_image": staff.upload("walk.jpg", whole),
	}}})
	for i := range 20 {
		staff.publish(fmt.Sprint("Lantern ", i+1))
	}
	staff.publishEvent("Lantern night")

	// Search shows 20 posts, and the others when they are asked for.
	p := s.signIn(editor)
	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/curation?slot=top/lead"))
	p.Until("document.activeElement?.id === 'q'")
	const found = "text(document.querySelector('.found'))"
	p.Keys("#q", "LANTERN")
	untilFound(p, found+" === 'The first 20 posts' && document.querySelectorAll('.posts > li').length === 20")
	p.Do("find('a', 'More posts').click()")
	p.Until(found + " === '21 posts' && document.querySelectorAll('.posts > li').length === 21 && q.value === 'LANTERN' && !find('a', 'More posts') && document.readyState === 'complete'")

	// Words without their accents find it.
	p.Do("q.value = ''")
	p.Keys("#q", "naive strasse")
	const title = "Naïve walks down Garden Straße"
	untilFound(p, found+" === '1 post' && text(document.querySelector('.posts .title')) === "+quote(title))
	p.Until("document.querySelector('.posts img').complete")
	small := browser.JS[struct {
		Address string
		Width   int
		Bytes   int
	}](p, `(img => ({Address: new URL(img.currentSrc).pathname, Width: img.naturalWidth, Bytes: performance.getEntriesByName(img.currentSrc)[0].encodedBodySize}))(document.querySelector('.posts img'))`)
	if !strings.Contains(small.Address, "/content/images/size/w600/") || small.Width != 600 || small.Bytes == 0 || small.Bytes > len(whole)/8 {
		s.t.Errorf("the picture: got %+v, want one of 600 pixels, with an eighth of %d bytes at most", small, len(whole))
	}
	s.t.Logf("a picture of %d bytes is shown in %d", len(whole), small.Bytes)
	p.Picture("picker-accents")

	// Recent leaves out events if asked to.
	recent := func() []string {
		s.t.Helper()
		return browser.JS[[]string](p, "[...document.querySelectorAll('.posts > li .title')].map(text)")
	}
	p.Do("find('a', 'Recent').click()")
	p.Until("document.readyState === 'complete' && find('a', 'Leave out events')") // the whole list is there then
	with := recent()
	p.Do("find('a', 'Leave out events').click()")
	p.Until("document.readyState === 'complete' && find('a', 'Show events too')")
	without := recent()
	others := slices.DeleteFunc(slices.Clone(with), func(title string) bool { return title == "Lantern night" })
	if len(with) != 20 || len(others) != 19 || len(without) != 20 || !slices.Equal(others, without[:19]) {
		s.t.Errorf("recent posts: got %q, and without events %q, want 20 of each, Lantern night only among the first", with, without)
	}
	p.Picture("picker-without-events")
	p.Do("find('a', 'Show events too').click()")
	p.Until("find('a', 'Leave out events') && find('.posts .title', 'Lantern night')")

	p.Do("find('a', 'Search').click()")
	p.Until("document.activeElement?.id === 'q'")
	p.Keys("#q", "naive strasse")
	untilFound(p, "find('button', "+quote("Choose "+title)+")")
	p.Do("find('button', %q).click()", "Choose "+title)
	s.chosen(p, staff, "Lead")
}
