package desk_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	pages "github.com/lychgate/caddy-lychgate/handlers/desk"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// harness sends requests to a desk as browsers do.
type harness struct{ *desktest.Harness }

func newHarness(t *testing.T) *harness { return &harness{desktest.New(t)} }

// path is where the pages are.
const path = "/ghost" + pages.Path + "/"

// ask sends a request to a page, with the session of a role unless that is "". Headers are
// name and value in turn.
func (h *harness) ask(method, target, role, body string, header ...string) *httptest.ResponseRecorder {
	h.T.Helper()
	r := httptest.NewRequestWithContext(h.T.Context(), method, "https://news.example.com"+target, strings.NewReader(body))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if role != "" {
		r.Header.Set("Cookie", role)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://news.example.com")
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
		if pair[1] == "" {
			r.Header.Del(pair[0])
		}
	}
	w := httptest.NewRecorder()
	h.Desk.Serve(w, r, h.Site, netip.MustParseAddr("192.0.2.1"))
	return w
}

// shown is a page as a browser has it.
type shown struct {
	Status int
	Title  string   // its heading
	Nav    []string // the pages that it leads to
	Text   string   // below the heading

	body *html.Node
}

func (h *harness) read(w *httptest.ResponseRecorder) shown {
	h.T.Helper()
	doc, err := html.Parse(w.Body)
	if err != nil {
		h.T.Fatalf("html.Parse: %v", err)
	}
	page := shown{Status: w.Code, body: doc}
	for n := range doc.Descendants() {
		switch {
		case n.Data == "nav" && n.Type == html.ElementNode:
			for a := range elements(n, "a") {
				page.Nav = append(page.Nav, textOf(a))
			}
		case n.Data == "h1":
			page.Title = textOf(n)
			var below []string
			for next := n.NextSibling; next != nil; next = next.NextSibling {
				below = append(below, textOf(next))
			}
			page.Text = strings.Join(strings.Fields(strings.Join(below, " ")), " ")
		}
	}
	return page
}

// get opens a page. post sends a form of it, and follows a redirect.
func (h *harness) get(page, role string) shown {
	h.T.Helper()
	return h.read(h.ask("GET", path+page, role, ""))
}

func (h *harness) post(page, role string, fields ...string) shown {
	h.T.Helper()
	response := h.ask("POST", path+page, role, formOf(fields...))
	if response.Code == http.StatusSeeOther {
		response = h.ask("GET", response.Header().Get("Location"), role, "")
	}
	return h.read(response)
}

// formOf encodes fields, which are name and value in turn.
func formOf(fields ...string) string {
	form := url.Values{}
	for pair := range slices.Chunk(fields, 2) {
		form.Add(pair[0], pair[1])
	}
	return form.Encode()
}

func elements(in *html.Node, name string) func(func(*html.Node) bool) {
	return func(yield func(*html.Node) bool) {
		for n := range in.Descendants() {
			if n.Type == html.ElementNode && n.Data == name && !yield(n) {
				return
			}
		}
	}
}

func attribute(of *html.Node, name string) string {
	for _, a := range of.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf joins runs of white space.
func textOf(of *html.Node) string {
	var text strings.Builder
	if of.Type == html.TextNode {
		text.WriteString(of.Data)
	}
	for n := range of.Descendants() {
		if n.Type == html.TextNode {
			text.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// logged takes the messages that were logged since the last call.
func (h *harness) logged() (messages []string) {
	for _, entry := range h.Log.TakeAll() {
		messages = append(messages, entry.Message)
	}
	return messages
}

// pageNames are those of all pages.
func pageNames() []string {
	return []string{"curation", "event-settings", "events", "integrations", "sync", "themes"}
}

func (h *harness) serve() string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.Desk.Serve(w, r, h.Site, netip.MustParseAddr("192.0.2.1"))
	}))
	h.T.Cleanup(server.Close)
	return server.URL
}

// fetch uses a connection of its own, without compression. It has the status, the headers, and the
// length of the body.
func fetch(t *testing.T, method, address string, header ...string) (int, http.Header, int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	for pair := range slices.Chunk(header, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatalf("transport.RoundTrip: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("io.ReadAll: %v", err)
	}
	return response.StatusCode, response.Header, len(body)
}
