package desk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// syncPage is what the template of the page has.
type syncPage struct {
	Notice   *notice
	Platform string
	Members  []pendingMember
	Count    string // of all members that are pending
	More     string // beyond these, empty if there are none

	Work      []pendingWork
	WorkCount string // of all that is pending, but for members
	MoreWork  string // beyond these, empty if there is none
	Refused   []pendingWork
}

// pendingWork is something else that the platform does not have, or has refused for good.
type pendingWork struct {
	Kind, Key   string
	Label       string // of the kind
	Title       string
	AskedBy     string // the name of the member of the staff who did, "" for none
	Since       time.Time
	Attempts    int
	Problem     string
	NextAttempt time.Time
}

// workLabels are what the page calls kinds of work. One that is not here has its name.
var workLabels = map[string]string{events.Kind: "Event", curation.Kind: "Slot", registration.Kind: "Registration"}

// pendingMember is a member whose last write the platform does not have.
type pendingMember struct {
	Email       string
	IsDeleted   bool
	WrittenAt   time.Time
	Attempts    int
	Problem     string // why the last attempt failed, empty if there was none
	NextAttempt time.Time
}

// What is shown is bounded, so that a page stays small.
const (
	maxPending = 50
	maxProblem = 200 // code points
)

func showSync(ctx context.Context, v *view) (any, error) {
	var said *notice
	query := v.request.URL.Query()
	if n, err := strconv.Atoi(query.Get("tried")); err == nil && n >= 0 {
		others, err := strconv.Atoi(query.Get("others"))
		if err != nil || others < 0 {
			others = 0
		}
		said = &notice{Text: triedOf(n, others)}
	}
	return v.syncPage(ctx, said)
}

// syncPage takes a notice for the top, nil for none.
func (v *view) syncPage(ctx context.Context, said *notice) (any, error) {
	queue, err := v.site.Pending()
	if err != nil {
		return nil, away(err)
	}
	shown := &syncPage{Notice: said, Platform: v.site.Kind.Title}
	list, counts, err := queue.Pending(ctx, v.site.Name, maxPending)
	if err != nil {
		return nil, away(err)
	}
	shown.add(list, counts)
	refused, err := queue.Refused(ctx, v.site.Name, maxPending)
	if err != nil {
		return nil, away(err)
	}
	shown.Refused = workOf(others(refused))
	return shown, nil
}

// add shows what is pending: members by themselves.
func (p *syncPage) add(list []work.Task, counts map[string]int) {
	for _, t := range list {
		if t.Kind == outbox.Kind {
			p.Members = append(p.Members, pendingMember{
				Email: t.Title, IsDeleted: t.IsRemoval, WrittenAt: t.Since,
				Attempts: t.Attempts, Problem: clip.Text(outbox.Sentence(t.Reason), maxProblem), NextAttempt: t.DueAt,
			})
		}
	}
	n := counts[outbox.Kind]
	p.Count = count(n)
	if more := n - len(p.Members); more > 0 {
		p.More = count(more)
	}
	p.Work = workOf(others(list))
	n = sumOf(counts) - n
	p.WorkCount = changes(n)
	if more := n - len(p.Work); more > 0 {
		p.MoreWork = changes(more)
	}
}

// others are the tasks that are not of members.
func others(list []work.Task) []work.Task {
	return slices.DeleteFunc(slices.Clone(list), func(t work.Task) bool { return t.Kind == outbox.Kind })
}

func sumOf(counts map[string]int) (n int) {
	for _, of := range counts {
		n += of
	}
	return n
}

func workOf(list []work.Task) (shown []pendingWork) {
	for _, t := range list {
		shown = append(shown, pendingWork{
			Kind: t.Kind, Key: t.Key, Label: cmp.Or(workLabels[t.Kind], t.Kind), Title: clip.Text(cmp.Or(t.Title, t.Key), maxProblem),
			AskedBy: clip.Text(t.AskedBy, maxLabel), Since: t.Since, Attempts: t.Attempts, Problem: clip.Text(t.Reason, maxProblem), NextAttempt: t.DueAt,
		})
	}
	return shown
}

// TriesLimit is how often what is pending of a site is tried at once: each time all of it.
var TriesLimit = ratelimit.Limit{Requests: 1, Window: 10 * time.Second}

// changeSync has all that is pending tried at once, or gives up what was refused.
func changeSync(ctx context.Context, v *view) (any, error) {
	queue, err := v.site.Pending()
	if err != nil {
		return nil, away(err)
	}
	if form := v.request.PostForm; form.Has("give_up") {
		if _, err := queue.GiveUp(ctx, v.site.Name, form.Get("kind"), form.Get("give_up")); err != nil {
			return nil, away(err)
		}
		return redirection(""), nil
	}
	site := sha256.Sum256([]byte(v.site.Name))
	if wait := v.desk.Tries.Take(ctx, ratelimit.Key(site[:16])); wait > 0 {
		return v.syncPage(ctx, &notice{Text: "All that is pending was tried a moment ago. Wait " + strconv.Itoa(ratelimit.RetryAfter(wait)) + " s, and try again then.", IsProblem: true})
	}
	counts, err := queue.TryNow(ctx, v.site.Name)
	if err != nil {
		return nil, away(err)
	}
	n := counts[outbox.Kind]
	tried := url.Values{"tried": {strconv.Itoa(n)}}
	if others := sumOf(counts) - n; others > 0 {
		tried.Set("others", strconv.Itoa(others))
	}
	return redirection(tried.Encode()), nil
}

func triedOf(n, others int) string {
	tried := count(n)
	switch {
	case n == 0 && others == 0:
		return "Nothing was pending."
	case n == 0:
		tried = changes(others)
	case others > 0:
		tried += " and " + changes(others)
	}
	return "Being tried now: " + tried + ". Reload the page to see what became of it."
}

func changes(n int) string {
	return humanize.Comma(int64(n)) + " " + english.PluralWord(n, "change", "") + " of posts"
}

func count(n int) string {
	return humanize.Comma(int64(n)) + " " + english.PluralWord(n, "member", "")
}
