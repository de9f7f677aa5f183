// Package warnings logs what recurs, such as that a platform is away, without
// filling the log. Each message gets a line per site and minute, and at most so
// many over all sites.
package warnings

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// interval is how long after a line of a message the site's next one may
	// follow.
	interval = time.Minute

	// maxLines bounds the lines of a message in an interval, over all sites.
	maxLines = 60
)

// Log is a log for what recurs. It may be used by many goroutines at once. A site
// costs memory only for an interval after a line.
type Log struct {
	logger *zap.Logger
	now    func() time.Time

	mu       sync.Mutex
	messages map[string]*lines // by message
}

// lines are the lines of a message in an interval.
type lines struct {
	since time.Time
	count int                  // since then
	sites map[string]time.Time // when a site had its last line
}

// New makes a Log.
func New(logger *zap.Logger, now func() time.Time) *Log {
	return &Log{logger: logger, now: now, messages: make(map[string]*lines)}
}

// Warn logs a message about a site, or about all if that is empty, unless it would
// be too many. It reports whether it did. Messages are constants.
func (l *Log) Warn(site, message string, fields ...zap.Field) bool {
	if !l.allows(site, message) {
		return false
	}
	if site != "" {
		fields = append([]zap.Field{zap.String("site", site)}, fields...)
	}
	l.logger.Warn(message, fields...)
	return true
}

func (l *Log) allows(site, message string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	m := l.messages[message]
	if m == nil {
		m = &lines{since: now, sites: make(map[string]time.Time)}
		l.messages[message] = m
	}
	if now.Sub(m.since) >= interval {
		m.since, m.count = now, 0
		for site, last := range m.sites {
			if now.Sub(last) >= interval {
				delete(m.sites, site)
			}
		}
	}
	last, logged := m.sites[site]
	if m.count >= maxLines || logged && now.Sub(last) < interval {
		return false
	}
	m.count++
	m.sites[site] = now
	return true
}
