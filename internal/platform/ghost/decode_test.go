package ghost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// repeated repeats a part n times, or until a response is as long as is read.
func repeated(begin, part, end string, n int) []byte {
	n = min(n, (maxResponse-len(begin)-len(end))/len(part))
	return []byte(begin + strings.Repeat(part, n) + end)
}

// hostileResponses are the most expensive that fit into maxResponse, and the most expensive that are decoded.
func hostileResponses() map[string][]byte {
	responses := make(map[string][]byte)
	add := func(name, begin, part, end string, decoded int) {
		responses[name] = repeated(begin, part, end, maxResponse)
		responses[fmt.Sprintf("%s, %d times", name, decoded)] = repeated(begin, part, end, decoded)
	}
	const elements, values = maxElements - 10, maxValues - 10
	add("nested lists", "", "[", "", maxNesting)
	add("nested objects", "", `{"members":`, "", maxNesting)
	add("lists of lists", `{"members":[`, `[],`, `[]]}`, elements/2)
	add("fields of wrong types", `{"members":[{"id":1`, `,"id":1`, `}]}`, values)
	add("fields", `{"":1`, `,"":1`, `}`, values)
	add("labels", `{"members":[{"labels":[`, `{},`, `{}]}]}`, elements)
	add("labels of members", `{"members":[`, `{"labels":[{},{},{},{},{},{},{},{}]},`, `{}]}`, elements/9)
	add("tags of posts", `{"posts":[`, `{"tags":[{},{},{},{},{},{},{},{}]},`, `{}]}`, elements/9)
	add("roles of users", `{"users":[{"roles":[`, `{},`, `{}]}]}`, elements)
	for _, name := range []string{"members", "posts", "tags", "labels", "newsletters", "settings", "webhooks", "themes", "users", "errors"} {
		begin := `{"` + name + `":[`
		add(name+", numbers", begin, `1,`, `1]}`, elements)
		add(name+", objects", begin, `{},`, `{}]}`, elements)
		add(name+", nulls", begin, `null,`, `null]}`, elements)
	}
	return responses
}

// allocated is how many bytes are allocated while something is done, with what is freed meanwhile.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A response takes a bounded part of the memory, whatever is in it.
func TestHostileResponsesTakeLittleMemory(t *testing.T) {
	const most = 64 << 20
	reads := []struct {
		list string
		read func(text []byte)
	}{
		{"members", func(text []byte) { _ = decode(text, new(members)) }},
		{"posts", func(text []byte) { _ = decode(text, new(posts)) }},
		{"posts", func(text []byte) { _ = decode(text, new(eventPosts)) }},
		{"tags", func(text []byte) { _ = decode(text, new(tags)) }},
		{"labels", func(text []byte) { _ = decode(text, new(labels)) }},
		{"newsletters", func(text []byte) { _ = decode(text, new(struct{ Newsletters []struct{ ID, Status string } })) }},
		{"webhooks", func(text []byte) { _ = decode(text, new(webhooks)) }},
		{"settings", func(text []byte) { _ = decode(text, new(struct{ Settings []setting })) }},
		{"members", func(text []byte) { _ = decode(text, new(json.RawMessage)) }},
		{"errors", func(text []byte) { firstError(text) }},
		{"users", func(text []byte) { _, _ = readUser(text) }},
		{"themes", func(text []byte) { _, _ = new(visitorClient).ReadUploaded(text) }},
		{"site", func(text []byte) { publicURL(text) }},
	}
	var highest uint64
	for name, text := range hostileResponses() {
		for _, r := range reads {
			if bytes.HasPrefix(text, []byte(`{"`)) && !bytes.HasPrefix(text, []byte(`{"":`)) && !bytes.HasPrefix(text, []byte(`{"`+r.list)) {
				continue // another list, of which nothing is kept
			}
			n := allocated(func() { r.read(text) })
			if highest = max(highest, n); n > most {
				t.Errorf("%s, read as %s: %d MB allocated, want %d at most", name, r.list, n>>20, most>>20)
			}
		}
	}
	t.Logf("%d MB allocated at most", highest>>20)
}

// hostile is a Ghost that responds with the same text to everything.
func hostile(t *testing.T, status int, text []byte) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	return newClient(t, Config{URL: server.URL, AdminKey: testKey})
}

// What reads a response over the network is bounded too, that of an error as well.
func TestHostileGhostTakesLittleMemory(t *testing.T) {
	const most = 64 << 20
	for name, status := range map[string]int{"members, numbers": http.StatusOK, "members, objects": http.StatusOK, "errors, objects": http.StatusBadRequest} {
		client := hostile(t, status, hostileResponses()[name])
		var err error
		if n := allocated(func() { _, _, err = client.Count(t.Context()) }); err == nil || n > most {
			t.Errorf("%s: error %v, %d MB allocated, want an error and %d at most", name, err, n>>20, most>>20)
		}
	}
}

// A page that is longer than was asked for is refused before anything of it is applied.
func TestPagesAreAsLongAsAskedFor(t *testing.T) {
	list := func(name, element string, n int) []byte {
		return []byte(`{"` + name + `":[` + strings.Repeat(element+",", n-1) + element + `],"meta":{"pagination":{"total":1000}}}`)
	}
	ids := []string{strings.Repeat("a", 24), strings.Repeat("b", 24)}
	for name, test := range map[string]struct {
		list  string
		limit int
		read  func(*Client) error
	}{
		"Count":       {"members", 1, func(c *Client) error { _, _, err := c.Count(t.Context()); return err }},
		"GetAll":      {"members", 2, func(c *Client) error { _, err := c.GetAll(t.Context(), ids); return err }},
		"List":        {"members", 100, func(c *Client) error { _, _, err := c.List(t.Context(), "", time.Time{}); return err }},
		"changes":     {"members", 100, func(c *Client) error { _, _, err := c.List(t.Context(), "", time.Now()); return err }},
		"FindByEmail": {"members", 100, func(c *Client) error { _, err := c.FindByEmail(t.Context(), "a@b.c"); return err }},
		"LabelsOf":    {"members", 1, func(c *Client) error { _, _, err := c.LabelsOf(t.Context(), "a"); return err }},
		"MembersOf":   {"members", 2, func(c *Client) error { _, err := c.MembersOf(t.Context(), ids); return err }},
		"newsletters": {"newsletters", 2, func(c *Client) error { return c.memberClient.checkNewsletters(t.Context(), ids) }},
		"Labels":      {"labels", 100, func(c *Client) error { _, err := c.Labels(t.Context(), ""); return err }},
		"label":       {"labels", 1, func(c *Client) error { return c.RemoveLabel(t.Context(), ids[0], "a") }},
		"tags":        {"tags", 100, func(c *Client) error { _, err := c.listTags(t.Context(), nil); return err }},
		"posts":       {"posts", 7, func(c *Client) error { _, _, err := c.listPosts(t.Context(), "", 7); return err }},
		"titles":      {"posts", 100, func(c *Client) error { _, _, err := c.listTitles(t.Context(), "", "", 1); return err }},
		"EventPosts":  {"posts", 2, func(c *Client) error { _, err := c.EventPosts(t.Context(), ids); return err }},
		"ChangedPosts": {"posts", 100, func(c *Client) error {
			_, err := c.ChangedPosts(t.Context(), time.Now())
			return err
		}},
	} {
		if err := test.read(hostile(t, http.StatusOK, list(test.list, `{"id":"a"}`, test.limit+1))); !errors.Is(err, errLongPage) {
			t.Errorf("%s: error %v of a page of %d, want %v", name, err, test.limit+1, errLongPage)
		}
		if err := test.read(hostile(t, http.StatusOK, list(test.list, `{"id":"a"}`, test.limit))); errors.Is(err, errLongPage) {
			t.Errorf("%s: error %v of a page of %d, which was asked for", name, err, test.limit)
		}
	}
}

// largePage is a page of 100 members as Ghost sends it, each with some labels and newsletters.
func largePage(some int) []byte {
	const (
		id    = `"id":"6600000000000000000000a1"`
		times = `"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"`
	)
	repeat := func(part string, n int) string { return strings.Repeat(part+",", n-1) + part }
	label := `{` + id + `,"name":"VIP","slug":"vip",` + times + `}`
	newsletter := `{` + id + `,"name":"Daily","description":null,"status":"active"}`
	member := `{` + id + `,"email":"jane@example.com","name":null,"note":null,"comped":false,"email_count":0,"labels":[` + repeat(label, some) +
		`],"newsletters":[` + repeat(newsletter, some) + `],` + times + `}`
	return []byte(`{"members":[` + repeat(member, 100) + `],"meta":{"pagination":{"total":1000}}}`)
}

// Members with as many labels and newsletters as the members API takes are read.
func TestLargePage(t *testing.T) {
	var response members
	if err := decodePage(largePage(100), 100, &response); err != nil || len(response.Members) != 100 || len(*response.Members[99].Labels) != 100 {
		t.Errorf("decode: error %v, %d members, want no error and 100", err, len(response.Members))
	}
}

// tokensOf counts the values, the elements of lists and the depth of a text, and the elements of the longest list in its object.
func tokensOf(t *testing.T, text []byte) (values, elements, depth, page int) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var open []json.Delim
	var counts []int
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return values, elements, depth, page
		}
		if err != nil {
			t.Fatalf("valid JSON: %v", err)
		}
		delim, _ := token.(json.Delim)
		switch last := len(open) - 1; {
		case delim == '}' || delim == ']':
			if len(open) == 2 && open[0] == '{' && open[1] == '[' {
				page = max(page, counts[last])
			}
			open, counts = open[:last], counts[:last]
			continue
		case last >= 0:
			counts[last]++
			if open[last] == '[' {
				elements++
			}
		}
		if values++; delim != 0 {
			open, counts = append(open, delim), append(counts, 0)
			depth = max(depth, len(open))
		}
	}
}

// What is decoded is what encoding/json reads, and what is refused is too large.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"members":[{"id":"a","labels":[{"name":"[,{\"\\"},{}]}],"meta":{"pagination":{"total":1}}}`, `[]`, `[[1,2],[3]]`, `{"members":[1,2,3]}`,
		`{"a":[{}],"members":[{"id":"\u005b"}]}`, `]`, `}{`, `"`, `"\`, `[}`, ``, `null`,
	} {
		f.Add([]byte(text), 2)
	}
	for _, text := range hostileResponses() {
		f.Add(text[:min(len(text), 200)], 0)
	}
	f.Fuzz(func(t *testing.T, text []byte, limit int) {
		var got, want members
		err := decodePage(text, limit, &got)
		wantErr := json.Unmarshal(text, &want)
		if err == nil {
			if wantErr != nil || cmp.Diff(want, got) != "" {
				t.Errorf("decode: %+v, want %+v, %v", got, want, wantErr)
			}
			return
		}
		if !errors.Is(err, errTooLong) && !errors.Is(err, errLongPage) {
			if wantErr == nil {
				t.Errorf("error %v, want none", err)
			}
			return
		}
		if !json.Valid(text) {
			return
		}
		values, elements, depth, page := tokensOf(t, text)
		isLarge := values > maxValues/2 || elements > maxElements/2 || depth > maxNesting // an empty list counts for an element
		if !isLarge && (limit <= 0 || page <= limit) {
			t.Errorf("refused: %v, with %d values, %d elements, %d deep, a page of %d", err, values, elements, depth, page)
		}
	})
}

// BenchmarkDecode reads a page of members.
func BenchmarkDecode(b *testing.B) {
	text := largePage(3)
	for name, read := range map[string]func([]byte, any) error{"json": json.Unmarshal, "checked": decode} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := read(text, new(members)); err != nil {
					b.Fatalf("%s: %v", name, err)
				}
			}
		})
	}
}
