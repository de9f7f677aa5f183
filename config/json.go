package config

import (
	"bytes"
	"encoding/json"
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
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	if err := checkJSON("", value, reflect.TypeOf(into)); err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// jsonExamples are values of fields, by name, or by name and that of their block.
var jsonExamples = map[string]string{
	"resolvers":          `["1.1.1.1", "9.9.9.9:53"]`,
	"store":              `{"kind": "sqlite", "source": "/var/lib/lychgate/lychgate.db"}`,
	"service":            `"lychgate"`,
	"secrets":            `["{env.LYCHGATE_SECRET}"]`,
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

// checkJSON checks that a value can be read into a type. The path is the value's,
// for messages.
func checkJSON(path string, value any, of reflect.Type) error {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if value == nil {
		return nil
	}
	var fits bool
	kind := ""
	switch of.Kind() {
	case reflect.String:
		kind = "a string"
		_, fits = value.(string)
	case reflect.Bool:
		kind = "true or false"
		_, fits = value.(bool)
	case reflect.Slice:
		return checkJSONList(path, value, of)
	case reflect.Struct:
		return checkJSONObject(path, value, of)
	case reflect.Map:
		return checkJSONMap(path, value, of)
	case reflect.Int, reflect.Int64:
		if of == durationType {
			return checkJSONDuration(path, value)
		}
		kind = "a whole number without quotes"
		number, _ := value.(json.Number)
		_, err := number.Int64()
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

func checkJSONList(path string, value any, of reflect.Type) error {
	list, ok := value.([]any)
	if !ok {
		return wrongJSON(path, "a list of strings")
	}
	for _, element := range list {
		if _, ok := element.(string); !ok && of.Elem().Kind() == reflect.String {
			return wrongJSON(path, "a list of strings")
		}
	}
	return nil
}

func checkJSONMap(path string, value any, of reflect.Type) error {
	object, ok := value.(map[string]any)
	if !ok {
		return wrongJSON(path, "an object")
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if err := checkJSON(join(path, key), object[key], of.Elem()); err != nil {
			return err
		}
	}
	return nil
}

func checkJSONObject(path string, value any, of reflect.Type) error {
	object, ok := value.(map[string]any)
	if !ok {
		return wrongJSON(path, "an object")
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
func checkJSONDuration(path string, value any) error {
	number, ok := value.(json.Number)
	if ok {
		if n, err := number.Int64(); err == nil && n >= int64(time.Millisecond) {
			return nil
		}
		return fmt.Errorf("%s: %s has no unit, and would be nanoseconds: write a duration in quotes, such as %s", path, number, jsonExample(path))
	}
	text, ok := value.(string)
	if !ok {
		return wrongJSON(path, "a duration in quotes")
	}
	if _, err := ParseDuration(text); err != nil {
		return fmt.Errorf("%s: %s is not a duration, such as %s", path, strconv.Quote(text), jsonExample(path))
	}
	return nil
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
