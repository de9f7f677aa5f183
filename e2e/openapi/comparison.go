package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	// It compares with JSON Schema 2020-12, as OpenAPI 3.1 documents need, in
	// which a type may be a list and null is a type. The tests hold it to that.
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Servers of a Caddy, each with a document of its own.
const (
	edgeServer  = "edge"
	adminServer = "admin"
)

// exchange is a request and its response, as internal/test/exchange writes them.
type exchange struct {
	Server        string      `json:"server"` // edgeServer or adminServer
	Method        string      `json:"method"`
	Target        string      `json:"target"`
	RequestHeader http.Header `json:"request_header"`
	RequestBody   string      `json:"request_body"`
	Status        int         `json:"status"`
	Header        http.Header `json:"header"`
	Body          string      `json:"body"`
}

// otherMethods stands for all methods that a path does not have. The document
// has it as an extension, because OpenAPI has no word for it; here it is read as
// a method that no test sends.
const (
	otherMethods          = http.MethodTrace
	otherMethodsExtension = "x-other-methods:"
)

// passedThrough is the status of the page that stands behind the edge in tests
// where a request to one of the document's paths is not for the edge.
const passedThrough = http.StatusTeapot

// deskPages begins the paths that also answer with a page, to who asks for one. The document is about JSON alone.
const deskPages = "/ghost/lychgate/desk/"

// undocumented are headers that may be in any response: those of Go's HTTP server,
// and those that tests have other handlers of Caddy add.
var undocumented = []string{"Connection", "Content-Length", "Date", "Server", "Vary", "X-Answer"}

// A calendar is compared as text; other tests read it.
func init() {
	openapi3filter.RegisterBodyDecoder("text/calendar", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.FileBodyDecoder)
}

// unseen are responses that the document has and no test can bring about. There
// are none.
var unseen = []responseKey{}

// responseKey names a response of the document.
type responseKey struct {
	path, method string
	status       int
}

func (a responseKey) String() string {
	if a.method == otherMethods {
		a.method = "other methods"
	}
	return fmt.Sprintf("%s, %s: %d", a.path, a.method, a.status)
}

// path is one of the document's.
type path struct {
	template   string
	pattern    *regexp.Regexp
	parameters []string
	item       *openapi3.PathItem
}

// comparison compares exchanges with a document.
type comparison struct {
	server   string // whose exchanges are compared
	document *openapi3.T
	paths    []path

	seen     map[responseKey]int
	leftOut  map[string]int      // number by reason
	compared map[string]struct{} // what has been, so that repetitions cost nothing
	findings []*finding
}

func newComparison(server string, text []byte) (*comparison, error) {
	text = bytes.ReplaceAll(text, []byte(otherMethodsExtension), []byte(strings.ToLower(otherMethods)+":"))
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	if err := document.Validate(context.Background()); err != nil {
		return nil, err
	}
	c := &comparison{
		server: server, document: document, seen: make(map[responseKey]int), leftOut: make(map[string]int), compared: make(map[string]struct{}),
	}
	parameter := regexp.MustCompile(`\\\{([^}]+)\\\}`)
	for template, item := range document.Paths.Map() {
		quoted := regexp.QuoteMeta(template)
		p := path{template: template, item: item}
		for _, match := range parameter.FindAllStringSubmatch(quoted, -1) {
			p.parameters = append(p.parameters, match[1])
		}
		// The edge takes whatever follows for the identifier, slashes too. None
		// at all is the path of all members.
		end := "$"
		if slices.ContainsFunc(document.Paths.Keys(), func(other string) bool { return strings.HasPrefix(other, template+"/{") }) {
			end = "/?$"
		}
		p.pattern = regexp.MustCompile("^" + parameter.ReplaceAllString(quoted, "(.+)") + end)
		c.paths = append(c.paths, p)
	}
	// A parameter takes slashes, so the longest path comes first. Of two, that with fewer
	// parameters is meant.
	slices.SortFunc(c.paths, func(a, b path) int {
		return cmp.Or(
			cmp.Compare(strings.Count(b.template, "/"), strings.Count(a.template, "/")),
			cmp.Compare(len(a.parameters), len(b.parameters)))
	})
	return c, nil
}

// readAll compares the exchanges that r has, one a line.
func (c *comparison) readAll(r io.Reader) error {
	decoder := json.NewDecoder(r)
	for {
		var e exchange
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = c.compare(&e)
		}
		if err != nil {
			return err
		}
	}
}

// compare compares one exchange. The error is one of reading it.
func (c *comparison) compare(e *exchange) error {
	if e.Server != c.server {
		c.leftOut["another server's"]++
		return nil
	}
	target, err := url.ParseRequestURI(e.Target)
	if err != nil {
		return err
	}
	escaped := target.EscapedPath()
	if c.server == adminServer { // where a slash at the end does not matter
		escaped = strings.TrimSuffix(escaped, "/")
	}
	p, parameters := c.pathOf(escaped)
	switch {
	case p == nil:
		c.leftOut["the path is not the document's"]++
		return nil
	case strings.HasPrefix(p.template, deskPages) && strings.Contains(e.RequestHeader.Get("Accept"), "text/html"):
		c.leftOut["a page of the desk"]++
		return nil
	case e.Status == passedThrough:
		c.leftOut["passed through, as configured"]++
		return nil
	}
	operation := responseKey{p.template, e.Method, e.Status}
	if p.item.GetOperation(e.Method) == nil {
		operation.method = otherMethods
	}
	c.seen[operation]++

	request, err := http.NewRequestWithContext(context.Background(), e.Method, target.String(), strings.NewReader(e.RequestBody))
	if err != nil {
		return err
	}
	request.Header = e.RequestHeader
	if e.RequestBody != "" && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json") // which it is taken for
	}
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: parameters,
		Route: &routers.Route{
			Spec: c.document, Path: p.template, PathItem: p.item, Method: operation.method, Operation: p.item.GetOperation(operation.method),
		},
		Options: &openapi3filter.Options{
			SkipSettingDefaults: true, RejectWhenRequestBodyNotSpecified: true,
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, // the exchanges have no keys
		},
	}
	if c.isNew(operation, e.RequestHeader, e.RequestBody, target.String()) && e.succeeded() {
		if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
			c.find(e, operation, fmt.Errorf("the edge did what the document does not allow: %w", err))
		}
	}
	if c.isNew(operation, e.Header, e.Body) {
		for _, err := range compareAnswer(input, e) {
			c.find(e, operation, err)
		}
	}
	return nil
}

// pathOf finds the path of the document that a request's path belongs to, and the
// parameters in it.
func (c *comparison) pathOf(escaped string) (*path, map[string]string) {
	for i, p := range c.paths {
		match := p.pattern.FindStringSubmatch(escaped)
		if match == nil {
			continue
		}
		parameters := make(map[string]string)
		for n, name := range p.parameters {
			parameters[name] = match[n+1]
			if plain, err := url.PathUnescape(match[n+1]); err == nil {
				parameters[name] = plain
			}
		}
		return &c.paths[i], parameters
	}
	return nil, nil
}

// succeeded reports whether what the request asks for was done.
func (e *exchange) succeeded() bool {
	var body struct {
		Success *bool `json:"success"`
	}
	err := json.Unmarshal([]byte(e.Body), &body)
	return e.Status < 300 && (err != nil || body.Success == nil || *body.Success)
}

// isNew reports whether this is the first time that it is asked about something.
func (c *comparison) isNew(operation responseKey, header http.Header, rest ...string) bool {
	header = maps.Clone(header)
	delete(header, "Date")
	delete(header, "X-Forwarded-For")
	key := fmt.Sprintf("%v %v %q", operation, header, rest)
	_, there := c.compared[key]
	c.compared[key] = struct{}{}
	return !there
}

// compareAnswer lists what is wrong with a response.
func compareAnswer(request *openapi3filter.RequestValidationInput, e *exchange) []error {
	if request.Route.Operation == nil {
		return []error{errors.New("the document does not say how other methods are answered")}
	}
	documented := request.Route.Operation.Responses.Value(strconv.Itoa(e.Status))
	if documented == nil {
		return []error{errors.New("the document does not have this status")}
	}
	var errs []error
	header := make(http.Header)
	for name, values := range e.Header {
		header.Set(name, strings.Join(values, ", "))
		isDocumented := slices.ContainsFunc(slices.Collect(maps.Keys(documented.Value.Headers)), func(other string) bool {
			return http.CanonicalHeaderKey(other) == name
		})
		if name == "Content-Type" {
			isDocumented = len(documented.Value.Content) > 0
		}
		if !isDocumented && !slices.Contains(undocumented, name) {
			errs = append(errs, fmt.Errorf("the document does not have the header %s: %s", name, header.Get(name)))
		}
	}
	options := *request.Options
	options.IncludeResponseStatus = true
	bodiless := e.Method == http.MethodHead || len(documented.Value.Content) == 0
	if bodiless {
		options.ExcludeResponseBody = true
		if e.Body != "" {
			errs = append(errs, errors.New("there is a body"))
		}
	}
	// The library does not look at responses to HEAD at all, so it gets the
	// response as one to GET.
	plain := *request
	plain.Request = request.Request.Clone(context.Background())
	plain.Request.Method = http.MethodGet
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &plain, Status: e.Status, Header: header,
		Body: io.NopCloser(strings.NewReader(e.Body)), Options: &options,
	})
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}

// finding is something that the document does not allow, with the first
// exchange that shows it.
type finding struct {
	what, exchange string
	times          int
}

func (c *comparison) find(e *exchange, operation responseKey, err error) {
	// The library appends the schema and the value, which say no more.
	problem, _, _ := strings.Cut(err.Error(), "\nSchema:")
	problem = strings.ReplaceAll(problem, "validation failed due to: ", "")
	what := operation.String() + ": " + problem
	for _, f := range c.findings {
		if f.what == what {
			f.times++
			return
		}
	}
	shown := fmt.Sprintf("request: %s %s %.500s\n\tanswer: %v %.500s", e.Method, e.Target, e.RequestBody, e.Header, e.Body)
	c.findings = append(c.findings, &finding{what, shown, 1})
}

// report writes what was compared, and what was found, and returns how many
// findings there are.
func (c *comparison) report(w io.Writer) int {
	order := func(a, b responseKey) int { return strings.Compare(a.String(), b.String()) }
	for _, a := range slices.SortedFunc(maps.Keys(c.seen), order) {
		fmt.Fprintf(w, "%6d  %v\n", c.seen[a], a)
	}
	for _, reason := range slices.Sorted(maps.Keys(c.leftOut)) {
		fmt.Fprintf(w, "%6d  left out: %s\n", c.leftOut[reason], reason)
	}
	for _, f := range c.findings {
		fmt.Fprintf(w, "%s\n\t%d times, first:\n\t%s\n", f.what, f.times, f.exchange)
	}
	findings := len(c.findings)
	for _, a := range slices.SortedFunc(slices.Values(c.documented()), order) {
		seen, excepted := c.seen[a] > 0, slices.Contains(unseen, a)
		switch {
		case !seen && !excepted:
			fmt.Fprintf(w, "%v: no test has seen it\n", a)
			findings++
		case seen && excepted:
			fmt.Fprintf(w, "%v: a test has seen it, so it is no exception\n", a)
			findings++
		}
	}
	return findings
}

// documented lists all responses in the document.
func (c *comparison) documented() []responseKey {
	var all []responseKey
	for _, p := range c.paths {
		for method, operation := range p.item.Operations() {
			for status := range operation.Responses.Map() {
				code, _ := strconv.Atoi(status) // 0 for a range, which nothing answers
				all = append(all, responseKey{p.template, method, code})
			}
		}
	}
	return all
}
