package ghost

import (
	"bytes"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Ghost's admin loads the script; an extension of the operator's is loaded by that, with
// its container where it was; and a response that is not Ghost's stays as it is.
func TestAdminScript(t *testing.T) {
	const refused = "refused"
	for response, want := range map[string]string{
		`{"config":{"version":"6","clientExtensions":{},"a":1}}`:                                        `{"config":{"version":"6","clientExtensions":{"script":{"src":"/s.js?v=1"}},"a":1}}`,
		"\n{ \"config\" : { } }\n":                                                                      "\n{ \"config\" : {\"clientExtensions\":{\"script\":{\"src\":\"/s.js?v=1\"}} } }\n",
		`{"config":{"version":"6"}}`:                                                                    `{"config":{"clientExtensions":{"script":{"src":"/s.js?v=1"}},"version":"6"}}`,
		`{"config":{"clientExtensions":null}}`:                                                          `{"config":{"clientExtensions":{"script":{"src":"/s.js?v=1"}}}}`,
		`{"config":{"clientExtensions":{"menu":{"items":[]}}}}`:                                         `{"config":{"clientExtensions":{"script":{"src":"/s.js?v=1"},"menu":{"items":[]}}}}`,
		`{"config":{"clientExtensions":{"script":null,"menu":{}}}}`:                                     `{"config":{"clientExtensions":{"script":{"src":"/s.js?v=1"},"menu":{}}}}`,
		`{"config":{"clientExtensions":{"script":{"container":"<p></p>"}}}}`:                            `{"config":{"clientExtensions":{"script":{"src":"/s.js?v=1","container":"<p></p>"}}}}`,
		`{"config":{"clientExtensions":{"script":{"src":""}}}}`:                                         `{"config":{"clientExtensions":{"script":{"src":"/s.js?v=1"}}}}`,
		`{"config":{"clientExtensions":{"script":{"src":null}}}}`:                                       `{"config":{"clientExtensions":{"script":{"src":"/s.js?v=1"}}}}`,
		`{"config":{"clientExtensions":{"script":{"container":"<p>","src":"//x/a?b=c&d#\u003ce \""}}}}`: `{"config":{"clientExtensions":{"script":{"container":"<p>","src":"/s.js?v=1#then=%2F%2Fx%2Fa%3Fb%3Dc%26d%23%3Ce+%22"}}}}`,
		`{"config":{"clientExtensions":{"script":{"src":7}}}}`:                                          refused,
		`{"config":{"clientExtensions":{"script":[]}}}`:                                                 refused,
		`{"config":{"clientExtensions":"none"}}`:                                                        refused,
		`{"config":[{}]}`:                                                                               refused,
		`{"errors":[{}]}`:                                                                               refused,
		`[{"config":{}}]`:                                                                               refused,
		`{"config":{}} {}`:                                                                              refused,
		`{"config":{"clientExtensions":{}`:                                                              refused,
		``:                                                                                              refused,
	} {
		got, ok := addScript([]byte(response), "/s.js?v=1")
		if !ok {
			got = []byte(refused)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", response, diff)
		}
	}
}

// Whatever Ghost answers, nothing of it changes but the script's address.
func FuzzAdminScript(f *testing.F) {
	for _, body := range []string{
		`{"config":{"clientExtensions":{"script":{"container":"<p>","src":"/a.js"},"menu":{}},"a":[1,{"b":"}\""}]}}`,
		`{"config":{},"config":{"clientExtensions":null}, "x" : -1e5 }`,
		`{"config":{"clientExtensions":{"script":{"src":"é\\"}}}}`,
		`{"config":{"a":-1e11115}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		changed, ok := addScript(response, "/s.js")
		if !ok {
			return
		}
		// Numbers as they are written: JSON has some that no float64 holds.
		decode := func(text []byte) (object map[string]any) {
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.UseNumber()
			if err := decoder.Decode(&object); err != nil {
				t.Fatalf("decoding %s: %v", text, err)
			}
			return object
		}
		before, after := decode(response), decode(changed)
		in := func(object map[string]any, key string) map[string]any {
			if object[key] == nil {
				object[key] = map[string]any{}
			}
			return object[key].(map[string]any)
		}
		script := in(in(in(before, "config"), "clientExtensions"), "script")
		want := "/s.js"
		if theirs, _ := script["src"].(string); theirs != "" {
			want += "#then=" + url.QueryEscape(theirs)
		}
		script["src"] = want
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s (-want +got):\n%s", response, diff)
		}
	})
}

func BenchmarkAdminScript(b *testing.B) {
	response := []byte(`{"config":{"version":"6.22.0","labs":{"members":true},"clientExtensions":{},"tenor":{"googleApiKey":null},"security":{"staffDeviceVerification":false}}}`)
	for b.Loop() {
		addScript(response, "/s.js")
	}
}
