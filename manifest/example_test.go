package manifest_test

import (
	"fmt"

	"github.com/lychgate/caddy-lychgate/manifest"
)

const file = `manifest_version: 1
events:
  types:
    webinar:
      label: Webinar
      post_template: custom-webinar
      tags: ["#webinar"]
      required_fields: [name]
      custom_fields:
        - key: seats
          label: Seats
          type: number
          max: 100
        - key: level
          type: stars
`

// A part that is wrong is left out, and is a finding. The rest can be used.
func ExampleParse() {
	result := manifest.Parse([]byte(file))
	for _, f := range result.Findings {
		fmt.Printf("line %d, %s, %s: %s\n", f.Line, f.Severity, f.Field, f.Message)
	}
	webinar, _ := result.Manifest.Events.Type("webinar")
	fmt.Println(webinar.Label, "has", len(webinar.CustomFields), "custom field")
	// Output:
	// line 15, error, events.types.webinar.custom_fields[1].type: `stars` is not a type of field, so the custom field is dropped; use `text`, `textarea`, `number`, `select`, `url`, `date`, `toggle` or `image`
	// Webinar has 1 custom field
}

// An event is checked before it is published.
func ExampleEventType_Publish() {
	webinar, _ := manifest.Parse([]byte(file)).Manifest.Events.Type("webinar")
	for _, p := range webinar.Publish(map[string]any{"seats": 120.0}) {
		fmt.Printf("%s: %s\n", p.Field, p.Message)
	}
	// Output:
	// name: Name is required.
	// seats: Seats must be 100 or less.
}

// Ghost calls the internal tag #lead hash-lead.
func ExampleTagIdentity() {
	fmt.Println(manifest.TagIdentity("#Lead") == manifest.TagIdentity("hash-lead"))
	// Output: true
}
