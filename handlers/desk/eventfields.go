package desk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file turns the fields of an event into inputs of the editor, and its form into values.

type choice struct {
	Value, Label string
	IsChosen     bool
}

// eventField is a field of the editor.
type eventField struct {
	Key, Label, Kind string
	Name, ID         string // of its input
	Value            string
	IsOn             bool // of a toggle
	Choices          []choice
	Unchosen         string // what no choice means
	IsRequired       bool
	Help, Hint       string
	Problem          string

	// Most is the number of characters that are taken, and Advised one that the theme
	// recommends. 0 is none.
	Most, Advised int

	Min, Max string // of a number, "" for none

	// IsFirst means that it has the focus when the editor is opened.
	IsFirst bool

	// More is what the button says that shows the input, "" for one that is always shown.
	More string

	// IsEnd means that it is the time at which an event ends. Ends then says on which day, if
	// that is another one than it starts on.
	IsEnd bool
	Ends  string

	// Crop is how a picture is cut.
	Crop    cropping
	Picture string // where a browser finds it, "" if it would ask another site
}

// cropping is how a picture is cut.
type cropping struct {
	Ratio               string // "" if the frame is free
	MinWidth, MinHeight int
	Phrase              string
}

// DescribedBy lists what a screen reader reads out with the input.
func (f eventField) DescribedBy() string {
	var ids []string
	for _, note := range []struct {
		name    string
		isThere bool
	}{{"-help", f.Help != ""}, {"-hint", f.Hint != ""}, {"-most", f.Most > 0}, {"-problem", f.Problem != ""}} {
		if note.isThere {
			ids = append(ids, f.ID+note.name)
		}
	}
	return strings.Join(ids, " ")
}

// fieldNames begin the names of the inputs, so that no key of a theme's is one of the form's
// own.
const fieldNames = "f."

// fieldsOf makes the fields of a type.
type fieldsOf struct {
	eventType *events.Type
	values    map[string]any
	problems  []manifest.Problem
	limits    platform.PostLimits
	imageSize string // the site's Default Featured Image Size
	picture   func(address string) string

	isWithoutMail bool // leaves out what is of mails alone
}

// fieldColumn is a column of the editor, on a page that is wide enough for two.
type fieldColumn struct {
	Place  string // left, right, or both for what is below them
	Groups []fieldGroup
}

// fieldGroup is a group of fields in the editor. Those of a line stand beside each other where there is room.
type fieldGroup struct {
	Title string
	Lines [][]eventField
}

// columns are the places of standard fields, in the order of the editor: that of the page, of reading and of the Tab key.
var columns = []struct {
	place  string
	groups []placedGroup
}{
	{"left", []placedGroup{
		{"What", [][]string{{"name"}, {"description"}}},
		{"When", [][]string{{"event_date", "event_time_start", "event_time_end", "event_date_end", "event_time_zone"}}},
		{"Where", [][]string{{"location"}, {"platform_url"}}},
	}},
	{"right", []placedGroup{
		{"Who", [][]string{{"access", "max_attendees"}, {"waiting_list", remindersKey}, {"registration_deadline", "deadline_time_end"}, {"rsvp_labels"}}},
		{"Picture", [][]string{{"feature_image"}, {"feature_image_alt"}}},
	}},
	{"both", []placedGroup{{"More", [][]string{{"slug"}}}}}, // and the theme's own, of which there may be many
}

// remindersKey is a field that only sites which send mails show.
const remindersKey = "reminders"

type placedGroup struct {
	title string
	lines [][]string
}

// columnsOf puts fields into columns. Columns and groups without fields are left out. A custom field may have the
// key of a standard one.
func columnsOf(fields []eventField, t *events.Type) (list []fieldColumn) {
	isOwn := func(f eventField) bool {
		standard, ok := events.StandardField(f.Key)
		return !ok || !t.Has(standard)
	}
	for _, c := range columns {
		column := fieldColumn{Place: c.place}
		for _, g := range c.groups {
			group := fieldGroup{Title: g.title}
			for _, keys := range g.lines {
				var line []eventField
				for _, key := range keys {
					if i := slices.IndexFunc(fields, func(f eventField) bool { return f.Key == key && !isOwn(f) }); i >= 0 {
						line = append(line, fields[i])
					}
				}
				group.add(line)
			}
			for _, f := range fields {
				if c.place == "both" && isOwn(f) {
					group.add([]eventField{f})
				}
			}
			if len(group.Lines) > 0 {
				column.Groups = append(column.Groups, group)
			}
		}
		if len(column.Groups) > 0 {
			list = append(list, column)
		}
	}
	return list
}

func (g *fieldGroup) add(line []eventField) {
	if len(line) > 0 {
		g.Lines = append(g.Lines, line)
	}
}

// list is in the order of the editor: standard fields, then the theme's own.
func (o fieldsOf) list() (fields []eventField) {
	for _, f := range o.eventType.Fields() {
		if !o.isWithoutMail || f.Key != remindersKey {
			fields = append(fields, o.standard(f))
		}
	}
	for _, custom := range o.eventType.CustomFields {
		fields = append(fields, o.custom(custom))
	}
	for i := range fields {
		fields[i].ID = fmt.Sprintf("field-%d", i)
	}
	return fields
}

func (o fieldsOf) standard(field *events.Field) eventField {
	f := o.field(field.Key, field.Label, field.Kind)
	f.IsRequired = slices.Contains(o.eventType.RequiredFields, f.Key)
	f.Help, f.More, f.IsEnd = field.Help, field.More, field.IsEnd()
	if last, ok := o.eventType.EndsOn(o.values); ok && f.IsEnd {
		f.Ends = "Ends on " + last.Format("Monday, 2 January 2006") + "."
	}
	advised := o.eventType.FieldConstraints.Of(f.Key)
	if field.Kind == "image" {
		phrase := cmp.Or(advised.ImagePhrase(), o.imageSize, manifest.BuiltInImageSize)
		f.Crop = cropping{advised.AspectRatio, advised.MinWidth, advised.MinHeight, phrase}
		f.Hint = recommended(phrase)
	} else { // nobody counts the characters of a picture's URL
		f.Most, f.Advised, f.Hint = field.Limit(o.limits), advised.MaxLength, hintOf(advised)
	}
	if len(field.Choices) > 0 {
		var options []choice
		for _, c := range field.Choices {
			options = append(options, choice{Value: c.Value, Label: c.Label})
		}
		f.Choices, f.Unchosen = choicesOf(options, strings.TrimSpace(f.Value)), field.Unchosen // as it is published
	}
	return f
}

func (o fieldsOf) custom(custom manifest.CustomField) eventField {
	f := o.field(custom.Key, clip.Text(custom.Label, maxLabel), custom.Type)
	f.IsRequired = custom.Required
	f.Help = clip.Text(custom.HelpText, maxMessage)
	f.Most = custom.MaxLength
	switch custom.Type {
	case "text":
		f.Hint = hintOf(manifest.Constraints{Pattern: custom.Pattern})
	case "number":
		f.Hint = rangeOf(custom.Constraints)
		if f.Min, f.Max = bound(custom.Min), bound(custom.Max); f.Hint != "" {
			f.Hint = "A number " + f.Hint + "."
		}
	case "select":
		var options []choice
		for _, option := range custom.Options {
			options = append(options, choice{Value: option, Label: clip.Text(option, maxLabel)})
		}
		f.Choices = choicesOf(options, f.Value)
	case "image":
		f.Crop = cropping{Ratio: custom.AspectRatio, MinWidth: custom.MinWidth, Phrase: custom.ImagePhrase()}
		parts := []string{f.Crop.Phrase}
		if custom.MaxFileSizeKB > 0 {
			parts = append(parts, fmt.Sprintf("%d KB at most", custom.MaxFileSizeKB))
		}
		f.Hint = recommended(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", "))
	}
	return f
}

// field makes what fields of all kinds have.
func (o fieldsOf) field(key, label, kind string) eventField {
	f := eventField{Key: key, Label: label, Kind: kind, Name: fieldNames + key, Value: textOfValue(o.values[key])}
	for _, p := range o.problems {
		if p.Field == key {
			f.Problem = clip.Text(p.Message, maxMessage)
		}
	}
	var err error
	switch kind {
	case "toggle":
		f.IsOn = o.values[key] == true
	case "image":
		f.Picture = o.picture(f.Value)
	case "date":
		_, err = time.Parse(time.DateOnly, f.Value)
	case events.TimeKind:
		if _, err = time.Parse("15:04", f.Value); err != nil {
			_, err = time.Parse(time.TimeOnly, f.Value)
		}
	case "number":
		_, err = strconv.ParseFloat(f.Value, 64)
	}
	if err != nil && f.Value != "" { // a browser would show nothing, and send that back
		f.Kind = "text"
	}
	return f
}

// choicesOf chooses an option. A value that is none of them stays one.
func choicesOf(options []choice, value string) (list []choice) {
	isKnown := value == ""
	for _, option := range options {
		option.IsChosen = option.Value == value
		isKnown = isKnown || option.IsChosen
		list = append(list, option)
	}
	if !isKnown {
		list = append(list, choice{Value: value, Label: clip.Text(value, maxLabel) + " (not offered any more)", IsChosen: true})
	}
	return list
}

func recommended(what string) string {
	if what == "" {
		return ""
	}
	return "Recommended: " + clip.Text(what, maxMessage) + "."
}

func hintOf(c manifest.Constraints) string {
	var parts []string
	if c.MaxLength > 0 {
		parts = append(parts, fmt.Sprintf("%d characters at most", c.MaxLength))
	}
	if c.Pattern != "" {
		parts = append(parts, "text of the form "+clip.Text(c.Pattern, maxLabel))
	}
	if bounds := rangeOf(c); bounds != "" {
		parts = append(parts, bounds)
	}
	return recommended(strings.Join(parts, ", "))
}

// rangeOf says the bounds of a number in words, "" for none.
func rangeOf(c manifest.Constraints) string {
	switch from, to := bound(c.Min), bound(c.Max); {
	case from != "" && to != "":
		return "from " + from + " to " + to
	case from != "":
		return "from " + from + " on"
	case to != "":
		return "up to " + to
	}
	return ""
}

func bound(of *float64) string {
	if of == nil {
		return ""
	}
	return strconv.FormatFloat(*of, 'f', -1, 64)
}

// textOfValue writes a value as its input has it.
func textOfValue(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case float64:
		return bound(&value)
	case bool:
		if value {
			return "yes"
		}
		return "no"
	case []any:
		var lines []string
		for _, entry := range value {
			lines = append(lines, textOfValue(entry))
		}
		return strings.Join(lines, "\n")
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// valuesOf reads the fields of a type from a form. What was typed into fields that the type has
// lost while the form was open is text.
func valuesOf(form url.Values, t *events.Type) map[string]any {
	values := make(map[string]any)
	for name := range form {
		if key, isField := strings.CutPrefix(name, fieldNames); isField && form.Get(name) != "" {
			values[key] = formText(form, name)
		}
	}
	for _, f := range (fieldsOf{eventType: t, picture: func(string) string { return "" }}).list() {
		delete(values, f.Key)
		if value := valueOf(form, f); value != nil {
			values[f.Key] = value
		}
	}
	return values
}

// formText drops characters that cannot be kept.
func formText(form url.Values, name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(form.Get(name), ""))
}

// valueOf is nil for an empty field.
func valueOf(form url.Values, f eventField) any {
	text := formText(form, f.Name)
	if f.Kind == "toggle" {
		return form.Has(f.Name)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	switch f.Kind {
	case "number":
		text = strings.TrimSpace(text)
		if number, err := strconv.ParseFloat(text, 64); err == nil && strings.Trim(text, "+-.0123456789eE") == "" {
			return number
		}
	case events.LabelsKind:
		var labels []any
		for line := range strings.Lines(text) {
			if label := strings.TrimSpace(line); label != "" {
				labels = append(labels, label)
			}
		}
		return labels
	}
	return text
}

// keptOf has the values that the editor shows no fields for. They come back when the editor chooses
// another type.
func keptOf(values map[string]any, fields []eventField) map[string]any {
	kept := make(map[string]any)
	maps.Copy(kept, values)
	for _, f := range fields {
		delete(kept, f.Key)
	}
	return kept
}
