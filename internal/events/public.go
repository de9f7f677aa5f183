package events

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// public is what readers get of an event (docs/events_api.md#for-readers-scripts). page is its post; it
// is zero on that page itself, which needs no address. Fields that the event's type does not have
// are left out.
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
	var labels object
	for _, f := range e.Shape.Labels {
		if value := custom[f.Key]; manifest.IsFilled(value) && value != false {
			labels.add(f.Key, f.Label)
		}
	}
	if labels != nil {
		public.add("labels", labels)
	}
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

// shown leaves out fields that the event's type does not have, and the theme's own.
func (e *Event) shown() map[string]any {
	standard, _ := e.valuesShown()
	return standard
}

// valuesShown leaves out fields that the event's type does not have. custom are the theme's own
// fields.
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

// When uses only fields that the type of a published event has, since readers get no others. A
// draft has no type yet, so all its fields count.
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

// head writes the event's part of the page's head: schema.org's Event for search engines, the event
// as JSON for scripts, and the script that shows it. address is the page's, "" while it is not
// known.
func (e *Event) head(of sitePage, address string) string {
	public := e.public(Post{})
	linked := linkedEvent{
		public: public.values(), announced: e.announced(), address: address, publication: of.publication, takesRegistrations: of.takesRegistrations,
		hasHiddenLink: e.Text("platform_url") != "" && accessOf(e.shown()) != AccessAnyone,
	}
	part := headStart + "\n" + script(`type="application/ld+json"`, linked.object()) + "\n" +
		script(`type="application/json" `+headID, public) + "\n"
	if of.script != "" {
		address := url.URL{Path: of.script, RawQuery: of.scriptLanguage}
		part += `<script src=` + unquoted.Replace(address.String()) + scriptEnd + "</script>\n"
	}
	return part + headEnd
}

// shownScript is the last element of a part that has lost its end.
var shownScript = regexp.MustCompile(`^\n<script src=[^"<> ]*` + regexp.QuoteMeta(scriptEnd) + `</script>`)

// unquoted escapes what a path may have and an attribute without quotes may not (HTML, section
// 13.1.2.3). In quotes, Ghost would write its own address in front of the path, which need not
// be the one that a reader is at.
var unquoted = strings.NewReplacer("&", "%26", "=", "%3D")

// announced is the start that readers were first told since the event was published, as JSON has
// it. It is "" if they were told none.
func (e *Event) announced() string {
	if e.Post.Start != "" {
		return e.Post.Start
	}
	return startOf(e.body) // of an event that was published before that was kept
}

// startOf takes JSON for readers. "" means that the event has no start.
func startOf(body string) string {
	_, rest, isThere := strings.Cut(body, `,"start":"`)
	start, _, _ := strings.Cut(rest, `"`)
	if !isThere {
		return ""
	}
	return start
}

// The JSON cannot end the script element: <, >, &, U+2028 and U+2029 are escaped.
func script(attributes string, content any) string {
	return "<script " + attributes + ">" + encode(content) + "</script>"
}

// withHead replaces an event's part of the HTML in the head of a page. part "" removes it.
func withHead(code, part string) string {
	return withPart(code, part, headStart, headEnd, func(rest string) string {
		_, rest, _ = strings.Cut(rest, headID)
		_, rest, _ = strings.Cut(rest, "</script>")
		return rest[len(shownScript.FindString(rest)):]
	})
}

// withPart replaces what is between start and end. part "" removes it. If end is missing, behind
// cuts the part from the rest.
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
