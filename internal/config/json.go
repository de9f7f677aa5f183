package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file reads JSON configuration. encoding/json stops at the first value that
// does not fit, and names Go's types rather than what to write, so the shape is
// checked first.

// ReadJSON reads a configuration into a struct, to which it points.
func ReadJSON(data []byte, into any) error {
	var text json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&text); err != nil {
		return err
	}
	if err := checkJSON("", text, reflect.TypeOf(into)); err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// jsonExamples are values of fields, by name, or by name and that of their block.
var jsonExamples = map[string]string{
	"resolvers":          `["1.1.1.1", "9.9.9.9:53"]`,
	"store":              `{"kind": "sqlite", "source": "/var/lib/lychgate/lychgate.db"}`,
	"service":            `"lychgate"`,
	"fallback_manifest":  `"/etc/caddy/events.yaml"`,
	"secrets":            `["{env.LYCHGATE_SECRET}"]`,
	"mail":               `{"url": "{env.SMTP_URL}", "from": "The Daily <events@example.com>"}`,
	"mail.url":           `"smtp://user:password@smtp.example.com:587"`,
	"from":               `"The Daily <events@example.com>"`,
	"redis":              `{"url": "redis://127.0.0.1:6379"}`,
	"redis.url":          `"redis://127.0.0.1:6379"`,
	"timeout":            `"50ms"`,
	"sites":              `{"daily": {"hosts": ["news.example.com"]}}`,
	"sites.*":            `{"hosts": ["news.example.com"]}`,
	"name":               `"daily"`,
	"hosts":              `["news.example.com"]`,
	"platform":           exampleJSON(exampleKind),
	"integrations":       `{"crm": {"key": "{env.CRM_KEY}"}}`,
	"integrations.*":     `{"key": "{env.CRM_KEY}"}`,
	"themes":             `{"nightly": {"repository": {"url": "https://git.example.com/acme/nightly.git"}}}`,
	"themes.*":           `{"repository": {"url": "https://git.example.com/acme/nightly.git"}}`,
	"repository":         `{"url": "https://git.example.com/acme/nightly.git"}`,
	"store.kind":         `"sqlite"`,
	"source":             `"/var/lib/lychgate/lychgate.db"`,
	"platform.kind":      strconv.Quote(exampleKind.Name),
	"platform.url":       strconv.Quote(exampleKind.URL.Example),
	"admin_url":          strconv.Quote(exampleKind.AdminURL.Example),
	"admin_key":          strconv.Quote(exampleKind.Key.Example),
	"webhooks":           `"https://news.example.com"`,
	"reconcile":          `"6h"`,
	"key":                `"{env.CRM_KEY}"`,
	"mode":               `"custom_id"`,
	"placeholder_domain": `"members.invalid"`,
	"repository.url":     `"https://git.example.com/acme/nightly.git"`,
	"branch":             `"main"`,
	"token":              `"{env.THEME_TOKEN}"`,
	"user":               `"x-access-token"`,
	"path":               `"/blog/ghost"`,
	"limit":              `{"requests": 10, "window": "1m"}`,
	"requests":           `10`,
	"window":             `"1m"`,
	"reject_to":          `"/"`,
	"cache_ttl":          `"24h"`,
	"cache_size":         `1000000`,
	"max_body":           `65536`,
	"":                   `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`,
}

func jsonExample(path string) string {
	names := strings.Split(path, ".")
	name, block := names[len(names)-1], ""
	if len(names) > 1 {
		block = names[len(names)-2]
	}
	for _, key := range []string{block + "." + name, block + ".*", name} {
		if example := jsonExamples[key]; example != "" {
			return example
		}
	}
	return jsonExamples[""]
}

// formerFields are those of the outermost object that the Caddyfile adapter wrote once. Caddy's autosave may have them,
// which is loaded with --resume.
var formerFields = map[string]bool{"lines": true, "line": true, "reject_to_line": true}

var durationType = reflect.TypeFor[Duration]()

// checkJSON checks that a text, which is JSON without space around it, can be read into a type. The path is that of
// its value, for messages. What does not fit stays text: its values could take 50 times as much memory.
func checkJSON(path string, text json.RawMessage, of reflect.Type) error {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if text[0] == 'n' { // null
		return nil
	}
	var fits bool
	kind := ""
	switch of.Kind() {
	case reflect.String:
		kind = "a string"
		fits = text[0] == '"'
	case reflect.Bool:
		kind = "true or false"
		fits = text[0] == 't' || text[0] == 'f'
	case reflect.Slice:
		return checkJSONList(path, text, of)
	case reflect.Struct:
		return checkJSONObject(path, text, of)
	case reflect.Map:
		return checkJSONMap(path, text, of)
	case reflect.Int, reflect.Int64:
		if of == durationType {
			return checkJSONDuration(path, text)
		}
		kind = "a whole number without quotes"
		_, err := json.Number(text).Int64()
		fits = err == nil
	}
	if fits {
		return nil
	}
	return wrongJSON(path, kind)
}

func wrongJSON(path, kind string) error {
	text := "write " + kind
	if kind != "true or false" {
		text += ", such as " + jsonExample(path)
	}
	if path != "" {
		text = path + ": " + text
	}
	return fmt.Errorf("%s", text)
}

func checkJSONList(path string, text json.RawMessage, of reflect.Type) error {
	fits := text[0] == '['
	if fits && of.Elem().Kind() == reflect.String {
		fits = json.Unmarshal(text, new([]aString)) == nil
	}
	if !fits {
		return wrongJSON(path, "a list of strings")
	}
	return nil
}

// aString reads a string and no other JSON, and keeps nothing of it.
type aString struct{}

func (*aString) UnmarshalJSON(text []byte) error {
	if text[0] != '"' {
		return errors.New("no string")
	}
	return nil
}

// readObject reads the fields of an object as text.
func readObject(path string, text json.RawMessage) (fields map[string]json.RawMessage, err error) {
	if text[0] != '{' {
		return nil, wrongJSON(path, "an object")
	}
	err = json.Unmarshal(text, &fields)
	return fields, err
}

func checkJSONMap(path string, text json.RawMessage, of reflect.Type) error {
	object, err := readObject(path, text)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if err := checkJSON(join(path, key), object[key], of.Elem()); err != nil {
			return err
		}
	}
	return nil
}

func checkJSONObject(path string, text json.RawMessage, of reflect.Type) error {
	object, err := readObject(path, text)
	if err != nil {
		return err
	}
	fields := make(map[string]reflect.Type)
	for _, field := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			fields[name] = field.Type
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, known := fields[key]
		if !known && path == "" && formerFields[key] {
			continue
		}
		if !known {
			return fmt.Errorf("%s: no such field: known are %s", join(path, key), strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		if err := checkJSON(join(path, key), object[key], field); err != nil {
			return err
		}
	}
	return nil
}

// checkJSONDuration checks a duration: a string with units, or nanoseconds as a
// Caddyfile becomes them. Few nanoseconds are taken for a forgotten unit.
func checkJSONDuration(path string, text json.RawMessage) error {
	if text[0] == '-' || '0' <= text[0] && text[0] <= '9' {
		if n, err := json.Number(text).Int64(); err == nil && n >= int64(time.Millisecond) {
			return nil
		}
		return fmt.Errorf("%s: %s has no unit, and would be nanoseconds: write a duration in quotes, such as %s", path, text, jsonExample(path))
	}
	var written string
	if json.Unmarshal(text, &written) != nil {
		return wrongJSON(path, "a duration in quotes")
	}
	if _, err := ParseDuration(written); err != nil {
		return fmt.Errorf("%s: %s is not a duration, such as %s", path, strconv.Quote(written), jsonExample(path))
	}
	return nil
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
