package events

import (
	"maps"
	"net/url"
	"regexp"
	"strings"

	"github.com/lychgate/caddy-lychgate/platform"
)

// public returns what readers get of an event (docs/events.md#for-readers-scripts) whose page is
// a post: the zero value for that page itself, which does without its address. Fields that the
// event's type does not have are left out.
func (e *Event) public(page Post) object {
	values := e.shown()
	of := shownEvent{values, whenOf(values), page}
	var public object
	public.add("id", e.ID)
	public.addFilled("slug", page.Slug)
	public.add("type", e.Type)
	public.add("status", string(e.Status))
	custom := maps.Clone(values)
	for _, f := range standardFields {
		delete(custom, f.Key)
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

// shown returns the values of fields that the type of an event has.
func (e *Event) shown() map[string]any {
	values := make(map[string]any, len(e.Values))
	for key, value := range e.Values {
		if e.has(key) {
			values[key] = value
		}
	}
	return values
}

// These enclose what an event puts into the head of its page. What staff write around it
// stays.
const (
	headStart = "<!-- lychgate-event: made anew by each save of the event -->"
	headEnd   = "<!-- /lychgate-event -->"

	// headID is in the last element of that part, or the one before.
	headID = `id="lychgate-event"`

	// scriptEnd ends the start tag of the script that may follow. A browser loads the script
	// beside the page, and does not paint before it has run: so nothing moves afterwards.
	scriptEnd = ` async blocking="render">`
)

// head returns what an event puts into the head of its page: schema.org's Event for search
// engines, the event as JSON for scripts, and the script at a path, "" for none, that shows it.
func (e *Event) head(path string) string {
	public := e.public(Post{})
	part := headStart + "\n" + script(`type="application/ld+json"`, linkedData(public.values())) + "\n" +
		script(`type="application/json" `+headID, public) + "\n"
	if path != "" {
		part += `<script src=` + unquoted.Replace((&url.URL{Path: path}).EscapedPath()) + scriptEnd + "</script>\n"
	}
	return part + headEnd
}

// shownScript is the last element of a part that has lost its end.
var shownScript = regexp.MustCompile(`^\n<script src=[^"<> ]*` + regexp.QuoteMeta(scriptEnd) + `</script>`)

// unquoted escapes what a path may have and an attribute without quotes may not (HTML, section
// 13.1.2.3). In quotes, Ghost would write its own address in front of the path, which need not
// be the one that a reader is at.
var unquoted = strings.NewReplacer("&", "%26", "=", "%3D")

// linkedData returns what readers get in the vocabulary of https://schema.org/Event.
func linkedData(public map[string]any) object {
	linked := object{{"@context", "https://schema.org"}, {"@type", "Event"}}
	for _, f := range standardFields {
		if f.linked != nil {
			f.linked(&linked, public[f.Key], public)
		}
	}
	return linked
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
