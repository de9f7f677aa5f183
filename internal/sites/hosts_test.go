package sites

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// sitesWith makes sites that have so many hosts each.
func sitesWith(prefix string, count, hosts int) (list []Site) {
	for i := range count {
		s := site(fmt.Sprintf("%s%03d", prefix, i))
		for j := range hosts - 1 {
			s.Hosts = append(s.Hosts, fmt.Sprintf("h%d.%s", j, s.Hosts[0]))
		}
		list = append(list, s)
	}
	return list
}

// As many hosts as one change may have are written in a moment, since other writers of SQLite wait for it. One
// more is refused, and changes nothing.
func TestManyHosts(t *testing.T) {
	lineartest.Volume(t)
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db, firstSecret)
		list := sitesWith("s", 100, MaxHosts/100)
		more := append(sitesWith("s", 100, MaxHosts/100), site("one-more"))
		var tooMany *TooManyHostsError
		if err := store.Add(t.Context(), more...); !errors.As(err, &tooMany) || tooMany.Hosts != MaxHosts+1 {
			t.Errorf("adding %d hosts: got %v, want a *TooManyHostsError", MaxHosts+1, err)
		}
		check(t, store)
		bounded := func(what string, do func() error) {
			t.Helper()
			began := lineartest.ProcessTime()
			must(t, do())
			took := lineartest.ProcessTime() - began
			t.Logf("%s %d hosts: %v of CPU", what, MaxHosts, took)
			if most := 4 * time.Second; took > most {
				t.Errorf("%s %d hosts took %v, want at most %v", what, MaxHosts, took, most)
			}
		}
		bounded("adding", func() error { return store.Add(t.Context(), list...) })
		check(t, store, list...)
		others := sitesWith("other", 20, 100)
		others[19].Hosts[99] = list[99].Hosts[1]
		taken := HostTakenError{list[99].Hosts[1], "other019", "s099"}
		err := store.Add(t.Context(), others...)
		if got := (*HostTakenError)(nil); !errors.As(err, &got) || *got != taken {
			t.Errorf("a host that is taken, among many: got %v, want %v", err, &taken)
		}
		kept := all(t, store)
		bounded("replacing", func() error { return store.Replace(t.Context(), kept...) })
		check(t, store, list...)
	})
}
