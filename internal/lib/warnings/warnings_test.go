package warnings_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/internal/lib/warnings"
)

// A platform that is away for long fills no log, and neither do many platforms. Each
// message and each site has lines of its own.
func TestRepeatedWarningsFillNoLog(t *testing.T) {
	now := time.Unix(0, 0)
	core, logs := observer.New(zap.WarnLevel)
	log := warnings.New(zap.New(core), func() time.Time { return now })
	lines := func() (got []string) {
		for _, entry := range logs.TakeAll() {
			got = append(got, fmt.Sprint(entry.ContextMap()["site"], ": ", entry.Message))
		}
		return got
	}
	for range 120 { // seconds
		log.Warn("daily", "away")
		log.Warn("daily", "slow")
		if now.Unix() == 30 {
			log.Warn("weekly", "away")
		}
		now = now.Add(time.Second)
	}
	want := []string{"daily: away", "daily: slow", "weekly: away", "daily: away", "daily: slow"}
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}

	now = now.Add(time.Minute)
	for site := range 1000 {
		log.Warn(strconv.Itoa(site), "away")
	}
	if n := len(lines()); n != 60 {
		t.Errorf("%d lines of one message in a minute, want 60", n)
	}
	if !log.Warn("daily", "slow", zap.Int("more", 1)) {
		t.Error("Warn of another message: got false, want true after many lines of one message")
	}
}
