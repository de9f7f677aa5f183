package desk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/url"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
)

// syncPage is what the template of the page has.
type syncPage struct {
	Notice   *notice
	Platform string
	Members  []pendingMember
	Count    string // of all that are pending
	More     string // beyond these, empty if there are none
}

// pendingMember is a member whose last write the platform does not have.
type pendingMember struct {
	Email       string
	IsDeleted   bool
	WrittenAt   time.Time
	Attempts    int64
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
	if n, err := strconv.Atoi(v.request.URL.Query().Get("tried")); err == nil && n >= 0 {
		said = &notice{Text: triedOf(n)}
	}
	return v.syncPage(ctx, said)
}

// syncPage makes the page. said may be nil.
func (v *view) syncPage(ctx context.Context, said *notice) (any, error) {
	list, n, err := v.members.Outbox.Pending(ctx, v.site.Name, maxPending)
	if err != nil {
		return nil, away(err)
	}
	shown := syncPage{Notice: said, Platform: v.site.Kind.Title, Count: count(n)}
	for _, record := range list {
		shown.Members = append(shown.Members, pendingMember{
			Email: cmp.Or(record.Email, record.GUID), IsDeleted: record.Deleted, WrittenAt: record.UpdatedAt,
			Attempts: record.Attempts, Problem: clip.Text(record.Problem, maxProblem), NextAttempt: record.NextAttempt,
		})
	}
	if more := n - len(list); more > 0 {
		shown.More = count(more)
	}
	return shown, nil
}

// TriesLimit is how often what is pending of a site is tried at once: each time all of it.
var TriesLimit = ratelimit.Limit{Requests: 1, Window: 10 * time.Second}

func tryNow(ctx context.Context, v *view) (any, error) {
	site := sha256.Sum256([]byte(v.site.Name))
	if wait := v.desk.Tries.Take(ctx, ratelimit.Key(site[:16])); wait > 0 {
		return v.syncPage(ctx, &notice{Text: "All that is pending was tried a moment ago. Wait " + strconv.Itoa(ratelimit.RetryAfter(wait)) + " s, and try again then.", IsProblem: true})
	}
	n, err := v.members.Outbox.TryNow(ctx, v.site.Name)
	if err != nil {
		return nil, away(err)
	}
	return redirection(url.Values{"tried": {strconv.Itoa(n)}}.Encode()), nil
}

func triedOf(n int) string {
	if n == 0 {
		return "Nothing was pending."
	}
	return "Being tried now: " + count(n) + ". Reload the page to see what became of it."
}

func count(n int) string {
	return humanize.Comma(int64(n)) + " " + english.PluralWord(n, "member", "")
}
