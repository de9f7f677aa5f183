package manifest

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// These are the constraints that standard fields can have as hints
// (docs/manifest.md, "Hints for standard fields").
var (
	textHints   = []string{"max_length", "pattern"}
	imageHints  = []string{"aspect_ratio", "min_width", "min_height"}
	numberHints = []string{"min", "max"}
)

// contract lists the fields that each event has, in the order of the editor. What is done with
// one stands in its row of the table in package events.
var contract = []struct {
	key   string
	hints []string
}{
	{"name", textHints},
	{"slug", textHints},
	{"description", textHints},
	{"event_date", nil},
	{"event_time_start", textHints},
	{"event_time_end", textHints},
	{"event_time_zone", textHints},
	{"location", textHints},
	{"platform_url", textHints},
	{"max_attendees", numberHints},
	{"feature_image", imageHints},
	{"access", nil},
	{"rsvp_labels", nil},
	{"registration_deadline", nil},
	{"deadline_time_end", textHints},
}

// standardFields are the keys, and hintKeys the constraints, of the contract's fields.
var standardFields, hintKeys = func() (keys []string, hints map[string][]string) {
	hints = make(map[string][]string)
	for _, field := range contract {
		keys = append(keys, field.key)
		hints[field.key] = field.hints
	}
	return keys, hints
}()

// customFieldTypes and typeProperties are those of docs/manifest.md, "Custom
// fields"; the options of a select are read apart.
var (
	customFieldTypes = []string{"text", "textarea", "number", "select", "url", "date", "toggle", "image"}
	typeProperties   = map[string][]string{
		"text":     {"max_length", "pattern"},
		"textarea": {"max_length"},
		"number":   {"min", "max"},
		"image":    {"aspect_ratio", "min_width", "max_file_size_kb"},
	}
)

// messagingStates are what a reader can be told of an event (docs/manifest.md,
// `events`).
var messagingStates = []string{
	"can_register", "login_required_free", "login_required_paid", "upgrade_required", "registered", "registration_closed",
	"event_passed",
}

var views = []string{RecentView, SearchView}

// StandardFields are the keys of the standard fields, as the editor orders them.
func StandardFields() []string { return slices.Clone(standardFields) }

// MessagingStates is a copy, which callers may change.
func MessagingStates() []string { return slices.Clone(messagingStates) }

// labelOf makes a label of a key: underscores become spaces and the first
// letter a capital.
func labelOf(key string) string {
	label := strings.ReplaceAll(key, "_", " ")
	first, size := utf8.DecodeRuneInString(label)
	if size == 0 {
		return label
	}
	return string(unicode.ToUpper(first)) + label[size:]
}

// IsMisnamed reports whether the name of a file in a theme is that of its manifest, such as lychgate-manifest.yaml, but
// for its case, or for .yml in place of .yaml.
func IsMisnamed(name, fileName string) bool {
	stem := strings.TrimSuffix(fileName, ".yaml")
	return name != fileName && (strings.EqualFold(name, fileName) || strings.EqualFold(name, stem+".yml"))
}

// TagIdentity is equal for two names of one tag on the platform: `hash-x` is `#x`, case does not
// count, and what no address has counts as a hyphen, as in Ghost's slugs.
func TagIdentity(tag string) string {
	tag = strings.ToLower(strings.TrimSpace(tag))
	if name, internal := strings.CutPrefix(tag, "#"); internal {
		tag = "hash-" + name
	}
	slug := make([]rune, 0, len(tag))
	for _, r := range tag {
		switch {
		case r == '\'':
			continue
		case unicode.IsSpace(r), strings.ContainsRune("-.@:/?#[]!$&()*+,;=\\%<>|^~\"{}`–—£", r):
			r = '-'
		}
		if r != '-' || len(slug) > 0 && slug[len(slug)-1] != '-' {
			slug = append(slug, r)
		}
	}
	if identity := string(slug); identity == "hash-" {
		return identity
	}
	return strings.TrimSuffix(string(slug), "-")
}

// IsInternal reports whether the name of a slot's tag says that readers do not see it.
func (s Slot) IsInternal() bool { return strings.HasPrefix(TagIdentity(s.Tag), "hash-") }

// EventTags are those that a post of the type is published with: the default tags, then
// the type's own, without doubles.
func (e *Events) EventTags(t EventType) []string {
	tags := []string{}
	seen := make(map[string]bool)
	for _, tag := range slices.Concat(e.DefaultTags, t.Tags) {
		if id := TagIdentity(tag); !seen[id] {
			seen[id] = true
			tags = append(tags, tag)
		}
	}
	return tags
}

// Nearest guesses the known name that a mistyped one is meant to be, or "". Case does not
// count, and a third of the letters may be wrong. Names of more than 40 bytes are not
// compared. The time is proportional to the number of names.
func Nearest(name string, known []string) string {
	return nearest(name, slices.DeleteFunc(slices.Clone(known), func(k string) bool { return len(k) > longestName }))
}

func nearest(name string, known []string) string {
	if len(name) > longestName {
		return ""
	}
	name = strings.ToLower(name)
	best, least := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// longestName bounds what is compared. The longest name there is has 21 bytes.
const longestName = 40

// distance counts the bytes to insert, delete, replace or swap with their
// neighbour to turn a into b, which is not longer than longestName.
func distance(a, b string) int {
	var rows [3][longestName + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
