package events

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/platform"
)

// public returns what readers get of an event (docs/events.md#for-readers-scripts) whose page is
// a post: the zero value for that page itself, which does without its address. Fields that the
// event's type does not have are left out.
func (e *Event) public(page Post) object {
	values, custom := e.valuesShown()
	of := shownEvent{values, whenOf(values), page}
	var public object
	public.add("id", e.ID)
	public.addFilled("slug", page.Slug)
	public.add("type", e.Type)
	public.add("status", string(e.Status))
	for _, f := range standardFields {
		if f.public != nil {
			f.public(&public, f.Key, of)
		}
	}
	public.add("fields", custom)
	public.add("updated_at", e.UpdatedAt)
	return public
}

func (e *Event) publicJSON() string {
	text, err := e.public(e.Post).MarshalJSON()
	if err != nil {
		panic(err) // values come from JSON
	}
	return string(text)
}

// shown returns the values of standard fields that the type of an event has.
func (e *Event) shown() map[string]any {
	standard, _ := e.valuesShown()
	return standard
}

// valuesShown returns the values of fields that the type of an event has: of standard fields,
// and of the theme's own.
func (e *Event) valuesShown() (standard, custom map[string]any) {
	standard, custom = make(map[string]any, len(e.Values)), make(map[string]any)
	for key, value := range e.Values {
		into := custom
		if _, ok := StandardField(key); ok && !slices.Contains(e.Shape.Own, key) {
			into = standard
		}
		if e.has(key) {
			into[key] = value
		}
	}
	return standard, custom
}

// When returns when an event is. Readers do not get what its type does not have, and a draft has
// no type yet.
func (e *Event) When() When {
	if e.Status.isPublic() {
		return whenOf(e.shown())
	}
	return whenOf(e.Values)
}

// These enclose what an event puts into the head of its page. What staff write around it
// stays.
const (
	partStart = "<!-- lychgate-event" // of both parts
	headStart = "<!-- lychgate-event: made anew by each save of the event -->"
	headEnd   = "<!-- /lychgate-event -->"

	// headID is in the last element of that part, or the one before.
	headID = `id="lychgate-event"`

	// scriptEnd ends the start tag of the script that may follow. A browser loads the script
	// beside the page, and does not paint before it has run: so nothing moves afterwards.
	scriptEnd = ` async blocking="render">`
)

// head returns what an event puts into the head of its page: schema.org's Event for search
// engines, the event as JSON for scripts, and the script that shows it. address is that of the
// page, "" while nobody knows it.
func (e *Event) head(of sitePage, address string) string {
	public := e.public(Post{})
	linked := linkedEvent{
		public: public.values(), announced: e.announced(), address: address, publication: of.publication, takesRegistrations: of.takesRegistrations,
		hasHiddenLink: e.Text("platform_url") != "" && accessOf(e.shown()) != AccessAnyone,
	}
	part := headStart + "\n" + script(`type="application/ld+json"`, linked.object()) + "\n" +
		script(`type="application/json" `+headID, public) + "\n"
	if of.script != "" {
		part += `<script src=` + unquoted.Replace((&url.URL{Path: of.script}).EscapedPath()) + scriptEnd + "</script>\n"
	}
	return part + headEnd
}

// shownScript is the last element of a part that has lost its end.
var shownScript = regexp.MustCompile(`^\n<script src=[^"<> ]*` + regexp.QuoteMeta(scriptEnd) + `</script>`)

// unquoted escapes what a path may have and an attribute without quotes may not (HTML, section
// 13.1.2.3). In quotes, Ghost would write its own address in front of the path, which need not
// be the one that a reader is at.
var unquoted = strings.NewReplacer("&", "%26", "=", "%3D")

// announced returns the start that readers were first told since the event was published, as JSON
// has it, "" for none.
func (e *Event) announced() string {
	if e.Post.Start != "" {
		return e.Post.Start
	}
	return startOf(e.body) // of an event that was published before that was kept
}

// startOf returns the start in what readers get of an event as JSON, "" for none.
func startOf(body string) string {
	_, rest, isThere := strings.Cut(body, `,"start":"`)
	start, _, _ := strings.Cut(rest, `"`)
	if !isThere {
		return ""
	}
	return start
}

// script returns a script element with JSON, in which nothing ends the element: <, > and &
// are escaped, and so are U+2028 and U+2029.
func script(attributes string, content any) string {
	return "<script " + attributes + ">" + encode(content) + "</script>"
}

// withHead returns the HTML in the head of a page with the part of an event, "" for none,
// in place of the one that was there.
func withHead(code, part string) string {
	return withPart(code, part, headStart, headEnd, func(rest string) string {
		_, rest, _ = strings.Cut(rest, headID)
		_, rest, _ = strings.Cut(rest, "</script>")
		return rest[len(shownScript.FindString(rest)):]
	})
}

// withPart returns HTML with a part, "" for none, in place of the one between start and end.
// behind returns what follows a part that has lost its end.
func withPart(code, part, start, end string, behind func(rest string) string) string {
	before, rest, found := strings.Cut(code, start)
	if !found {
		if part == "" {
			return code
		}
		return strings.TrimLeft(strings.TrimRight(code, "\n")+"\n"+part, "\n")
	}
	_, after, found := strings.Cut(rest, end)
	if !found { // somebody cut it off
		after = behind(rest)
	}
	if part == "" {
		return strings.TrimRight(before, "\n") + after
	}
	return before + part + after
}

// isShown reports whether readers find the post of an event.
func (p Post) isShown() bool { return p.ID != "" && p.Status == platform.Published }
