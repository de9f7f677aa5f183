package inbound_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/internal/test/worktest"
)

// A platform whose members are not compared is asked every 10 minutes whether it responds, and each minute while
// it does not, so that operators see both soon.
func TestContactsOfAnIdleSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPlatforms()
		p := &empty{platforms: c, site: "daily"}
		var mu sync.Mutex
		told := make(map[string]int)
		take := func() map[string]int {
			mu.Lock()
			defer mu.Unlock()
			taken := told
			told = make(map[string]int)
			return taken
		}
		s := inbound.New(inbound.Config{Store: newIdle(), Logger: zap.NewNop(), Work: worktest.Queue(t), Contacts: func(site string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				site += " " + err.Error()
			}
			told[site]++
		}})
		s.Put("daily", inbound.Site{Platform: p})
		stop := start(t, s)
		defer stop()
		<-time.After(3*time.Hour + time.Minute)
		if diff := cmp.Diff(map[string]int{"daily": 19}, take()); diff != "" {
			t.Errorf("told in 3 hours (-want +got):\n%s", diff)
		}
		fail := func(fails bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			p.fails = fails
		}
		fail(true)
		<-time.After(12*time.Minute + time.Second)
		if diff := cmp.Diff(map[string]int{"daily connection refused": 4}, take()); diff != "" {
			t.Errorf("told while it fails (-want +got):\n%s", diff)
		}
		fail(false)
		<-time.After(2 * time.Minute)
		if diff := cmp.Diff(map[string]int{"daily": 1}, take()); diff != "" {
			t.Errorf("told once it responds (-want +got):\n%s", diff)
		}
	})
}

// Platforms that all fail are asked 100 times a second at most, as those that respond are.
func TestContactsWhileAllFail(t *testing.T) {
	lineartest.Volume(t)
	synctest.Test(t, func(t *testing.T) {
		const sites, minutes = 20_000, 10
		c := newPlatforms()
		s := inbound.New(inbound.Config{Store: newIdle(), Logger: zap.NewNop(), Work: worktest.Queue(t)})
		for i := range sites {
			s.Put(siteName(i), inbound.Site{Platform: &empty{platforms: c, site: siteName(i), fails: true}})
		}
		stop := start(t, s)
		defer stop()
		<-time.After(10 * time.Minute) // by then all were asked once
		c.count("count")
		<-time.After(minutes * time.Minute)
		if n, most := c.count("count"), minutes*60*100+sites; n < sites || n > most {
			t.Errorf("asked %d times in %d minutes, want %d to %d", n, minutes, sites, most)
		}
	})
}
