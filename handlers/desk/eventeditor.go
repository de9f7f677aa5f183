package desk

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// input is what an editor shows of an event that may not be kept yet.
type input struct {
	event    events.Event
	typeKey  string // that is shown
	values   map[string]any
	problems []manifest.Problem
	notice   *notice
	conflict *conflict
	isSaved  bool
	once     string
}

// edit shows the editor of an event, with another type if typeKey is not "".
func (r *eventsView) edit(ctx context.Context, id, typeKey string) (any, error) {
	e, err := r.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if current := r.current(ctx, []events.Event{e}); len(current) == 1 {
		e = current[0]
	}
	in := input{event: e, typeKey: e.Type, values: e.Values, notice: r.eventDone(id), isSaved: true}
	if in.notice != nil {
		in.notice = r.toldOf(ctx, e, r.request.URL.Query().Get("done"))
	}
	if _, ok := r.declared.Type(typeKey); ok && typeKey != e.Type {
		in.typeKey, in.isSaved = typeKey, false
	}
	return r.editor(ctx, in)
}

// editNew shows the editor of a new event. Without a type that the theme has, it is the
// default one, or the first.
func (r *eventsView) editNew(ctx context.Context, typeKey string) (any, error) {
	if r.declared == nil {
		return r.list(ctx)
	}
	if _, ok := r.declared.Type(typeKey); !ok {
		i := slices.IndexFunc(r.declared.Types, func(t manifest.EventType) bool { return t.Default })
		typeKey = r.declared.Types[max(i, 0)].Key
	}
	values := make(map[string]any)
	if zone, isKnown := r.siteZone(ctx); isKnown {
		values["event_time_zone"] = zone.String()
	}
	return r.editor(ctx, input{event: events.Event{Status: events.Draft}, typeKey: typeKey, values: values})
}

// editor shows the editor.
func (r *eventsView) editor(ctx context.Context, in input) (any, error) {
	e := in.event
	if e.ID != "" { // else the site's
		r.zone = e.When().Zone()
	}
	shown := &eventEditor{
		ID: e.ID, Name: nameOf(in.values), Theme: r.theme, Type: in.typeKey, Revision: e.Revision, Status: string(e.Status), Platform: r.site.Kind.Title,
		Pending: r.pendingOf(e), Post: postOf(e), Card: string(e.Post.Card), Conflict: in.conflict, IsSaved: in.isSaved,
	}
	shown.Owner = r.owner()
	if e.ID == "" {
		shown.Once = cmp.Or(in.once, rand.Text())
	}
	shown.View, shown.Preview, shown.Text = r.addressesOf(e)
	shown.PublishAt, shown.Missing = e.Post.PublishAt, r.missing(e)
	if err := r.addKept(ctx, shown, e); err != nil {
		return nil, err
	}
	if r.site.Kind.ImagesAPI != "" {
		shown.Upload = r.desk.Path + r.site.Kind.ImagesAPI
	}
	shown.Findings = shownFindings(r.findings)
	shown.More = len(r.findings) - len(shown.Findings)
	if r.declared != nil {
		for _, t := range r.declared.Types {
			shown.Types = append(shown.Types, choice{t.Key, clip.Text(t.Label, maxLabel), t.Key == in.typeKey})
		}
	}
	if e.Theme != r.theme && e.ID != "" {
		shown.Elsewhere = clip.Text(e.Theme, maxLabel)
	}
	if e.ID == "" {
		shown.Name = "New event"
	}
	t, ok := events.NewType(r.declared, in.typeKey)
	if !ok {
		shown.Type, shown.GoneType, shown.Gone = "", clip.Text(in.typeKey, maxLabel), shownValues(in.values, nil)
		return eventsPage{Notice: in.notice, Editor: shown}, nil
	}
	settings, err := r.events.Settings(ctx, r.site.Name)
	if err != nil {
		return nil, away(err)
	}
	of := fieldsOf{t, in.values, in.problems, r.site.Events.Host.PostLimits(), settings.ImageSize, r.picture, !r.site.Events.SendsMail}
	shown.Fields = of.list()
	shown.Columns = columnsOf(shown.Fields, t)
	if in.conflict == nil && len(in.problems) == 0 && len(shown.Columns) > 0 {
		shown.Columns[0].Groups[0].Lines[0][0].IsFirst = true
	}
	shown.PostTitle = clip.Text(t.PostTemplate, maxLabel)
	for _, p := range in.problems {
		if i := slices.IndexFunc(shown.Fields, func(f eventField) bool { return f.Key == p.Field }); i >= 0 {
			shown.Problems = append(shown.Problems, shown.Fields[i])
		} else {
			shown.Others = append(shown.Others, clipped(p))
		}
	}
	kept, err := json.Marshal(keptOf(in.values, shown.Fields))
	if err != nil {
		return nil, err
	}
	shown.Kept = string(kept)
	return eventsPage{Notice: in.notice, Editor: shown}, nil
}

// addKept adds what is kept beside an event: how many are registered, and who did what.
func (r *eventsView) addKept(ctx context.Context, shown *eventEditor, e events.Event) error {
	if e.ID == "" {
		return nil
	}
	places, err := r.places(ctx, e)
	if err != nil {
		return err
	}
	series, err := r.events.List(ctx, r.site.Name, events.Query{Series: e.ID, Most: 1})
	if err != nil {
		return away(err)
	}
	if series.Total > 1 {
		shown.Series = series.Total
	}
	entries, err := r.events.History(ctx, r.site.Name, e.ID)
	if err != nil {
		return r.explain(err)
	}
	shown.Guests, shown.History = places[0], shownDeedsOf(r.site.Kind.Title, entries)
	return nil
}

// owner is a name for who edits and the site, of which a browser that others use too does not say
// who that is.
func (r *eventsView) owner() string {
	sum := sha256.Sum256([]byte(r.site.Name + "\x00" + r.member.ID))
	return hex.EncodeToString(sum[:8])
}

// maxShownValue is how much of a value is shown where it is only read, in code points.
const maxShownValue = 2000

// shownValues writes all values as text, the standard ones first. t may be nil.
func shownValues(values map[string]any, t *events.Type) (list []shownValue) {
	keys := events.EditorKeys()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, isStandard := events.StandardField(key); !isStandard {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if value := textOfValue(values[key]); value != "" {
			list = append(list, shownValue{fieldLabel(key, t), clip.Text(value, maxShownValue)})
		}
	}
	return list
}

// fieldLabel is the key of a custom field that the type, which may be nil, does not have.
func fieldLabel(key string, t *events.Type) string {
	if f, ok := events.StandardField(key); ok {
		return f.Label
	}
	if t != nil {
		for _, custom := range t.CustomFields {
			if custom.Key == key {
				key = custom.Label
			}
		}
	}
	return clip.Text(key, maxLabel)
}

// theirs compares what somebody else has saved with what is typed here.
func theirs(event events.Event, typed map[string]any, t *events.Type) *conflict {
	differing := maps.Clone(typed)
	maps.Copy(differing, event.Values)
	for key := range differing {
		saved, isSaved := event.Values[key]
		switch {
		case reflect.DeepEqual(saved, typed[key]), isOff(saved) && isOff(typed[key]):
			delete(differing, key)
		case !isSaved:
			differing[key] = "(empty)"
		}
	}
	return &conflict{event.Revision, shownValues(differing, t)}
}

// isOff reports whether the value of a toggle is off, as it is at first.
func isOff(value any) bool { return value == nil || value == false }

// typed is what the form of the editor says.
type typed struct {
	id       string
	revision int64
	typeKey  string // that was chosen
	values   map[string]any
	once     string // see eventEditor
}

// read reads the form of the editor.
func (r *eventsView) read(form url.Values) (typed, error) {
	revision, err := revisionOf(form)
	if err != nil {
		return typed{}, err
	}
	of := typed{id: form.Get("event"), revision: revision, typeKey: form.Get("type"), values: make(map[string]any), once: clip.Text(form.Get("once"), maxField)}
	if err := json.Unmarshal([]byte(form.Get("kept")), &of.values); form.Has("kept") && err != nil || of.values == nil {
		return typed{}, errForm
	}
	was, ok := events.NewType(r.declared, form.Get("was")) // whose fields the form has
	if !ok {
		was, ok = events.NewType(r.declared, of.typeKey)
	}
	if !ok {
		return typed{}, errNoType
	}
	kept := of.values
	of.values = valuesOf(form, was)
	for key, value := range kept {
		if !form.Has(fieldNames + key) { // also of a field that the type has got since
			of.values[key] = value
		}
	}
	return of, nil
}

func revisionOf(form url.Values) (int64, error) {
	text := form.Get("over")
	if text == "" {
		text = form.Get("revision")
	}
	if text == "" {
		return 0, nil
	}
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errForm
	}
	return revision, nil
}

var errNoType = refusal(http.StatusConflict, "The active theme has no such event type any more. Load the page again.")
