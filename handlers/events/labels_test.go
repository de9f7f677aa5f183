package events

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Whatever language has messages has the words of buttons too, all of them.
func TestEachLanguageHasAllLabels(t *testing.T) {
	withStar := []string{"Sent", "SentToMember", "Places", "Moved"}
	for language := range strings.FieldsSeq("ar cs da de en es fi fr he it ja ko nb nl no pl pt ru sv tr uk zh") {
		if _, ok := messaging.Language(language); !ok {
			t.Errorf("%s has no messages", language)
		}
		of := reflect.ValueOf(messaging.LabelsOf(language))
		for i := range of.NumField() {
			text, name := of.Field(i).String(), of.Type().Field(i).Name
			if stars := strings.Count(text, "*"); text == "" || (stars == 1) != slices.Contains(withStar, name) || stars > 1 {
				t.Errorf("%s: %s is %q, want a text with a star where something is put in", language, name, text)
			}
		}
	}
}

// A page says its language, and gets texts and labels in it.
func TestAnswersInALanguage(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free"}`)
	type response struct {
		Message string
		Labels  *struct{ Register string }
	}
	register := func(text string) *struct{ Register string } { return &struct{ Register string }{text} }
	const german = "Melde dich mit deiner E-Mail-Adresse an."
	const english = "Register with your email address."
	for _, c := range []struct {
		query, accepted string
		want            response
	}{
		{"", "", response{english, nil}},
		{"", "de", response{german, nil}},
		{"?lang=de-AT", "fr", response{german, register("Anmelden")}},
		{"?lang=tlh", "de", response{german, register("Anmelden")}},
		{"?lang=tlh", "", response{english, register("Register")}},
	} {
		got, _ := d.ask("GET", "/events/party/registration"+c.query, "", "Accept-Language", c.accepted)
		var answered response
		if err := json.Unmarshal([]byte(got.Body), &answered); err != nil {
			t.Fatalf("reading %s: %v", got.Body, err)
		}
		if diff := cmp.Diff(c.want, answered); diff != "" {
			t.Errorf("%q, Accept-Language %q: want -, got +: %s", c.query, c.accepted, diff)
		}
	}
}
