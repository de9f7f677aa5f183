package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/standin"
)

const (
	draftCount = 20

	// everyRepeat is which of the CRM's creates is sent once more with its Idempotency-Key, as when
	// the response was lost.
	everyRepeat = 10

	eventsPath  = "/ghost/lychgate/events"
	draftsPath  = "/ghost/lychgate/desk/events"
	membersPath = "/integration/members"
)

// publication is what its readers, its CRM and its editors send, and what the edges have
// acknowledged of it.
type publication struct {
	drafts []string // IDs

	mu         sync.Mutex
	members    map[string]string // GUIDs by email
	registered map[seat]struct{}
	saves      []save
	renumbered int // creates whose repetition got another GUID
}

// seat is a registration.
type seat struct{ event, member string }

// save is one of a draft that was acknowledged.
type save struct {
	draft, n    int
	sent, ended time.Time
}

func newPublication() *publication {
	return &publication{members: make(map[string]string), registered: make(map[seat]struct{})}
}

func (p *publication) kinds() []*kind {
	all := []int{0, 1, 2}
	creates := float64(*memberCount) / (0.9 * duration.Seconds())
	flow := func(name string, after time.Duration, path func(n int) string) *kind {
		return &kind{name: name, rate: *readerRate, after: after, edges: all, accept: ok, request: func(n int) request {
			return request{method: http.MethodGet, path: path(n), header: readerHeader(n)}
		}}
	}
	register := flow("register", time.Second, registrationPath)
	register.request = func(n int) request {
		return request{method: http.MethodPut, path: registrationPath(n), header: readerHeader(n)}
	}
	register.accept = p.acceptRegistration
	return []*kind{
		{name: "lookup", rate: *lookupRate, edges: all, request: lookup, accept: ok},
		flow("list of events", 0, func(int) string { return eventsPath + "?limit=3" }),
		flow("event", 200*time.Millisecond, func(n int) string { return eventsPath + "/" + eventSlug(n) }),
		flow("registration", 300*time.Millisecond, registrationPath),
		register,
		{name: "calendar", rate: *calendarRate, edges: all, accept: ok, request: func(n int) request {
			return request{method: http.MethodGet, path: eventsPath + ".ics", header: from(2, n%100)}
		}},
		{name: "create", isOfCRM: true, rate: creates, count: *memberCount, edges: []int{0, killed}, request: create, accept: p.acceptMember},
		{
			name: "create, repeated", isOfCRM: true, rate: creates / everyRepeat, count: *memberCount / everyRepeat, after: 2 * time.Second, edges: []int{killed, 0},
			request: func(n int) request { return create(n * everyRepeat) },
			accept:  func(n int, t try, sent time.Time) string { return p.acceptMember(n*everyRepeat, t, sent) },
		},
		{name: "save of a draft", rate: *saveRate, edges: all, request: p.save, accept: p.acceptSave},
	}
}

// from has a request come from an address of its own, in a range for each kind of client.
func from(kind, n int) []string {
	return []string{"X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", kind<<4+n>>16, n>>8&255, n&255)}
}

func ok(_ int, t try, _ time.Time) string {
	if t.status == http.StatusOK {
		return ""
	}
	return t.outcome
}

func lookup(n int) request {
	domain := "gmail.com"
	if n%2 == 1 { // of whose domain DNS is asked, once for all edges
		domain = fmt.Sprintf("company-%d.example", n%1000)
	}
	return request{method: http.MethodGet, path: "/ghost/inbox-provider?domain=" + domain, header: from(0, n)}
}

func readerID(n int) string { return fmt.Sprintf("0000000a-0000-4000-8000-%012x", n) }

func readerHeader(n int) []string {
	return append(from(1, n), "Cookie", "ghost-members-ssr="+readerID(n)+"; ghost-members-ssr.sig=x", "Sec-Fetch-Site", "same-origin")
}

func eventSlug(n int) string { return fmt.Sprintf("event-%d", n%eventCount) }

func registrationPath(n int) string { return eventsPath + "/" + eventSlug(n) + "/registration" }

func (p *publication) acceptRegistration(n int, t try, _ time.Time) string {
	if t.status != http.StatusOK {
		return t.outcome
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.registered[seat{eventID(n % eventCount), readerID(n)}] = struct{}{}
	return ""
}

// eventID is that of an event which eventstest.Fill keeps.
func eventID(n int) string {
	return strings.Map(func(digit rune) rune { return digit - '0' + 'a' }, fmt.Sprintf("%026d", n))
}

func email(n int) string { return fmt.Sprintf("member-%d@example.com", n) }

func create(n int) request {
	return request{
		method: http.MethodPost, path: membersPath,
		body: fmt.Sprintf(`{"email":%q,"name":"Jane Doe %d","labels":["crm"]}`, email(n), n),
		header: []string{
			"Authorization", "Bearer " + benchtest.IntegrationKey(0), "Content-Type", "application/json", "Idempotency-Key", "create-" + strconv.Itoa(n),
		},
	}
}

func (p *publication) acceptMember(n int, t try, _ time.Time) string {
	var body struct {
		Success bool   `json:"success"`
		Code    string `json:"code"`
		Data    struct {
			GUID string `json:"guid"`
		} `json:"data"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil || t.status != http.StatusOK || !body.Success {
		return strings.TrimSpace(t.outcome + " " + body.Code)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, isKnown := p.members[email(n)]; isKnown && before != body.Data.GUID {
		p.renumbered++
	}
	p.members[email(n)] = body.Data.GUID
	return ""
}

// draft is one with the number of its last save in its name.
func draft(n int) string {
	return fmt.Sprintf(`{"theme":%q,"type":"webinar","values":{"name":"Save %d","event_date":"2100-06-01"}}`, standin.Theme, n)
}

func editorHeader(n int) []string {
	return append(from(3, n), "Cookie", fmt.Sprintf("ghost-admin-api-session=editor-%d", n), "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json")
}

func (p *publication) save(n int) request {
	return request{method: http.MethodPut, path: draftsPath + "/" + p.drafts[n%draftCount], body: draft(n), header: editorHeader(n % draftCount)}
}

func (p *publication) acceptSave(n int, t try, sent time.Time) string {
	if t.status != http.StatusOK {
		return t.outcome
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saves = append(p.saves, save{n % draftCount, n, sent, time.Now()})
	return ""
}

// prepare makes the readers members, and keeps the drafts.
func (p *publication) prepare(ctx context.Context, client *http.Client, base string, ghost *standin.Ghosts) error {
	for n := range int(*readerRate*duration.Seconds()) + 1 {
		ghost.Add("", standin.Member{UUID: readerID(n), Email: fmt.Sprintf("reader-%d@example.com", n), Name: "Jane", Subscribed: true})
	}
	for n := range draftCount {
		t := ask(ctx, client, base, request{method: http.MethodPost, path: draftsPath, body: draft(-1), header: editorHeader(n)})
		var made struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(t.body, &made); err != nil || t.status != http.StatusCreated {
			return fmt.Errorf("a draft: %s: %.500s", t.outcome, t.body)
		}
		p.drafts = append(p.drafts, made.ID)
	}
	return nil
}
