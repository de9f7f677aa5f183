package events

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Feed answers readers. What it has answered is kept a moment, in bounded memory, and is
// answered again while the store is away. It may be used by many goroutines at once.
type Feed struct {
	store  Store
	asking singleflight.Group

	mu    sync.Mutex
	sites map[string]siteVersion
	kept  map[feedKey]keptAnswer
	size  int // of what is kept, in bytes
}

// NewFeed returns a Feed of a store.
func NewFeed(store Store) *Feed {
	return &Feed{store: store, sites: make(map[string]siteVersion), kept: make(map[feedKey]keptAnswer)}
}

// Answer is what readers get.
type Answer struct {
	Body []byte
	Tag  string // that changes with the body
}

// Form is what an answer is written as.
type Form string

// The forms.
const (
	JSON     Form = "json"
	Calendar Form = "ics" // RFC 5545
)

type feedKey struct {
	site, slug string
	query      PublicQuery
	form       Form
}

// siteVersion is what the store last said of a site.
type siteVersion struct {
	version  int64
	settings Settings
	until    time.Time
}

type keptAnswer struct {
	Answer
	version int64
	until   time.Time
}

const (
	// versionTTL is how long the version of a site is taken to be the one that it was.
	versionTTL = time.Second

	// answerTTL is how long an answer is kept: with time, events are over.
	answerTTL = time.Minute

	// maxKept bounds what is kept of all answers, in bytes, and maxSites the sites of which
	// the version is.
	maxKept  = 32 << 20
	maxSites = 10000

	// askTimeout bounds a question to the store, for which several readers may wait.
	askTimeout = 5 * time.Second
)

// List returns a page of a site's events, as JSON or as a calendar. That is called as name
// says, unless the site's settings say something else. Errors: those of the store.
func (f *Feed) List(ctx context.Context, site, name string, q PublicQuery, form Form) (Answer, error) {
	return f.answer(ctx, feedKey{site: site, query: q, form: form}, func(ctx context.Context, settings Settings) ([]byte, error) {
		bodies, total, err := f.store.Bodies(ctx, site, q)
		if err != nil {
			return nil, err
		}
		if form == Calendar {
			return calendarOf(cmp.Or(settings.CalendarName, name), bodies)
		}
		return listBody(bodies, total, q, settings), nil
	})
}

// Event returns the event whose page has a slug, as JSON or as a calendar. Errors:
// ErrNotFound, those of the store.
func (f *Feed) Event(ctx context.Context, site, slug string, form Form) (Answer, error) {
	return f.answer(ctx, feedKey{site: site, slug: slug, form: form}, func(ctx context.Context, settings Settings) ([]byte, error) {
		body, err := f.store.Body(ctx, site, slug)
		if err != nil {
			return nil, err
		}
		if form == Calendar {
			return calendarOf("", []string{body})
		}
		return []byte(body[:len(body)-1] + `,"messages":` + encode(settings.messages()) + "}"), nil
	})
}

// messages returns the texts of messaging states, an empty object for none.
func (s Settings) messages() map[string]string {
	if s.Messages == nil {
		return map[string]string{}
	}
	return s.Messages
}

// listBody returns a page of events as JSON.
func listBody(bodies []string, total int, q PublicQuery, settings Settings) []byte {
	var text bytes.Buffer
	text.WriteString(`{"events":[`)
	for i, body := range bodies {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(body)
	}
	next := "null"
	if from := q.From + len(bodies); from < total && len(bodies) > 0 {
		next = strconv.Itoa(from)
	}
	fmt.Fprintf(&text, `],"total":%d,"next":%s,"messages":%s}`, total, next, encode(settings.messages()))
	return text.Bytes()
}

// answer returns what is kept of an answer, or makes it. Errors: those of write, and of the
// store.
func (f *Feed) answer(ctx context.Context, key feedKey, write func(context.Context, Settings) ([]byte, error)) (Answer, error) {
	f.mu.Lock()
	kept, ok := f.kept[key]
	f.mu.Unlock()
	site, err := f.site(ctx, key.site)
	if err != nil && ok {
		return kept.Answer, nil
	}
	if err != nil {
		return Answer{}, err
	}
	if ok && kept.version == site.version && time.Now().Before(kept.until) {
		return kept.Answer, nil
	}
	made, err, _ := f.asking.Do(fmt.Sprintf("%d %q", site.version, fmt.Sprint(key)), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		body, err := write(ctx, site.settings)
		if err != nil {
			return Answer{}, err
		}
		if key.form == JSON && !json.Valid(body) {
			return Answer{}, fmt.Errorf("the kept events of site %s are not JSON", key.site)
		}
		sum := sha256.Sum256(body)
		answer := Answer{body, hex.EncodeToString(sum[:8])}
		f.keep(key, keptAnswer{answer, site.version, time.Now().Add(answerTTL)})
		return answer, nil
	})
	if err != nil && ok && kept.version == site.version && !errors.Is(err, ErrNotFound) {
		return kept.Answer, nil
	}
	if err != nil {
		return Answer{}, err
	}
	return made.(Answer), nil
}

// keep keeps an answer, in place of others if there are too many.
func (f *Feed) keep(key feedKey, answer keptAnswer) {
	if len(answer.Body) > maxKept/4 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(key)
	for other := range f.kept { // in no order
		if f.size+len(answer.Body)+overhead <= maxKept {
			break
		}
		f.forget(other)
	}
	f.kept[key] = answer
	f.size += len(answer.Body) + overhead
}

// overhead is what an answer takes besides its body, in bytes, roughly.
const overhead = 512

func (f *Feed) forget(key feedKey) {
	if kept, ok := f.kept[key]; ok {
		f.size -= len(kept.Body) + overhead
		delete(f.kept, key)
	}
}

// site returns the version of a site, and its settings.
func (f *Feed) site(ctx context.Context, site string) (siteVersion, error) {
	f.mu.Lock()
	known, ok := f.sites[site]
	f.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known, nil
	}
	asked, err, _ := f.asking.Do("version "+site, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		until := time.Now().Add(versionTTL)
		version, settings, err := f.store.Version(ctx, site)
		if err != nil {
			return siteVersion{}, err
		}
		asked := siteVersion{version, settings, until}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.sites) >= maxSites {
			clear(f.sites)
		}
		f.sites[site] = asked
		return asked, nil
	})
	return asked.(siteVersion), err
}
