package classifier

import (
	"context"
	"crypto/rand"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// Scripts runs a script of Lua on a key of Redis's, and returns its text. An error
// means that Redis is away.
type Scripts interface {
	Run(script, key string, args ...string) (string, error)
}

// shared keeps answers in Redis for all processes of a fleet, and lets one of them look
// a domain up while the others wait for its answer. While Redis is away everybody looks
// up by themselves.
//
// Domains share a fixed number of keys, so that strangers who ask for many cannot fill
// Redis: of two domains with one key the last one is kept.
type shared struct {
	redis   Scripts
	scope   string        // tells keys from those of other DNS servers
	waiters chan struct{} // holds one for each lookup that waits for another process
}

func newShared(redis Scripts, scope string) shared {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(scope)) // never fails
	return shared{redis, strconv.FormatUint(uint64(hash.Sum32()), 36), make(chan struct{}, maxWaiters)}
}

const (
	// sharedKeys is how many keys there are.
	sharedKeys = 1 << 20

	// claimTime is how long a process has for a lookup, before another makes one.
	claimTime = defaultTimeout + time.Second

	// maxWait is how long a process waits for the lookup of another, before it makes
	// one too.
	maxWait = 2 * time.Second

	// maxWaiters bounds the lookups that wait. Those beyond are made at once.
	maxWaiters = 64

	// maxSharedTTL bounds for how long an answer is taken over.
	maxSharedTTL = 30 * 24 * time.Hour

	// firstPoll is how soon a process looks whether the other has an answer; it doubles
	// up to lastPoll.
	firstPoll = 10 * time.Millisecond
	lastPoll  = 250 * time.Millisecond
)

// A value is a kind, the domain, a space, and the provider of an answer or the token of
// the process that made a claim.
const (
	answerKind  = "a"
	failureKind = "f"
	claimKind   = "c"
)

// findScript is one round trip: it reads the value of a domain and for how many
// milliseconds it stands, or else claims the domain, and then returns nothing.
const findScript = `local value = redis.call('GET', KEYS[1])
if value and string.sub(value, 2, #ARGV[1] + 2) == ARGV[1] .. ' ' then
	return value .. ' ' .. redis.call('PTTL', KEYS[1])
end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
return ''`

// keepScript keeps a value, in place of any if there is no claim, and else of that claim
// alone.
const keepScript = `if ARGV[3] == '' or redis.call('GET', KEYS[1]) == ARGV[3] then
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return ''`

// dropScript takes a claim back.
const dropScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return ''`

func (s shared) key(domain string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(domain)) // never fails
	return "lychgate:mx:" + s.scope + ":" + strconv.FormatUint(hash.Sum64()%sharedKeys, 36)
}

// find reads the answer for a domain and for how long it stands. If ok is false, the
// caller looks it up, and then calls keep or drop with the claim.
func (s shared) find(ctx context.Context, domain string) (e entry, ttl time.Duration, claim string, ok bool) {
	if s.redis == nil {
		return entry{}, 0, "", false
	}
	claim = claimKind + domain + " " + rand.Text()
	waiting := false
	for start, interval := time.Now(), firstPoll; ; interval = min(2*interval, lastPoll) {
		value, err := s.redis.Run(findScript, s.key(domain), domain, milliseconds(claimTime), claim)
		if err != nil || value == "" {
			return entry{}, 0, claim, false
		}
		if e, ttl, ok = parseShared(value); ok || !strings.HasPrefix(value, claimKind) || time.Since(start) >= maxWait {
			return e, ttl, claim, ok
		}
		if !waiting {
			select {
			case s.waiters <- struct{}{}:
				waiting = true
				defer func() { <-s.waiters }()
			default:
				return entry{}, 0, claim, false
			}
		}
		select {
		case <-ctx.Done():
			return entry{}, 0, claim, false
		case <-time.After(interval):
		}
	}
}

// parseShared reads what findScript returns of an answer.
func parseShared(value string) (e entry, ttl time.Duration, ok bool) {
	fields := strings.Split(value, " ") // kind and domain, provider, time
	if len(fields) != 3 {
		return entry{}, 0, false
	}
	left, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || left <= 0 || left > maxSharedTTL.Milliseconds() {
		return entry{}, 0, false
	}
	e = entry{provider: Provider(fields[1]), failed: strings.HasPrefix(value, failureKind)}
	if !e.failed && !strings.HasPrefix(value, answerKind) || !isProvider(e.provider) {
		return entry{}, 0, false // a claim, or of another version of Lychgate
	}
	return e, time.Duration(left) * time.Millisecond, true
}

// keep keeps the answer for a domain. A failure takes the place of the caller's claim
// alone, since another process may have found the answer meanwhile.
func (s shared) keep(domain string, e entry, ttl time.Duration, claim string) {
	if s.redis == nil {
		return
	}
	kind := answerKind
	if e.failed {
		kind = failureKind
	} else {
		claim = ""
	}
	_, _ = s.redis.Run(keepScript, s.key(domain), kind+domain+" "+string(e.provider), milliseconds(ttl), claim) // it is away: nothing is lost
}

// drop takes a claim back, so that another process looks the domain up.
func (s shared) drop(domain, claim string) {
	if s.redis == nil {
		return
	}
	_, _ = s.redis.Run(dropScript, s.key(domain), claim) // it is away, or the claim runs out
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
