package classifier

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestMXRecordsDecideTheProvider(t *testing.T) {
	const (
		google    = "aspmx.l.google.com."
		microsoft = "x.mail.protection.outlook.com."
		unknown   = "mx.example.net."
	)
	tests := []struct {
		name    string
		records string // "preference exchange, ..."
		want    Provider
	}{
		{"no records", "", None},
		{"null MX", "0 .", None},
		{"nobody known", "10 " + unknown, None},
		{"hosted workspace", "1 " + google + ", 5 alt1.aspmx.l.google.com., 5 alt2.aspmx.l.google.com.", Gmail},
		{"hosted by the other", "0 " + microsoft, Outlook},
		{"order of records is no matter", "20 " + microsoft + ", 10 " + google, Gmail},
		{"a level of one provider", "10 " + google + ", 10 aspmx2.googlemail.com.", Gmail},
		{"level mixes two", "10 " + google + ", 10 " + microsoft, None},
		{"level holds an unknown server", "10 " + google + ", 10 " + unknown, None},
		{"unknown first in the level", "10 " + unknown + ", 10 " + google, None},
		{"levels without known servers are passed over", "1 " + unknown + ", 10 " + google, Gmail},
		{"only the first level with a known server counts", "10 " + google + ", 20 " + microsoft + ", 30 " + unknown, Gmail},
		{"a later level does not mend a mixed one", "10 " + google + ", 10 " + unknown + ", 20 " + microsoft, None},
		{"null MX beside a server", "0 ., 10 " + google, Gmail},
		{"the highest preference", "65535 " + google, Gmail},
		{"the same server twice", "10 " + google + ", 10 " + google, Gmail},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			records := parseRecords(test.records)
			if got := Decide(records); got != test.want {
				t.Errorf("Decide = %q, want %q", got, test.want)
			}
			if got := decideSlowly(records); got != test.want {
				t.Errorf("decideSlowly = %q, want %q", got, test.want)
			}
		})
	}
}

// A wrong decision sends a reader to an inbox that is not theirs.
func FuzzDecide(f *testing.F) {
	f.Add("10 aspmx.l.google.com., 10 mx.example.net., 20 x.outlook.com.")
	f.Add("0 mx-aol.mail.gm0.yahoodns.net., 0 mta5.am0.yahoodns.net")
	f.Add("1 mail.ru, 1 MXS.MAIL.RU., 0 .")
	f.Add(`5 evil\.google.com., 5 a.mx.microsoft`)
	f.Fuzz(func(t *testing.T, in string) {
		records := parseRecords(in)
		fast, slow := Decide(records), decideSlowly(records)
		if fast != slow {
			t.Fatalf("Decide(%v) = %q, but slowly it is %q", records, fast, slow)
		}
		slices.Reverse(records)
		if again := Decide(records); again != fast {
			t.Fatalf("the order of %v changes the answer from %q to %q", records, fast, again)
		}
	})
}

// decideSlowly is the documented rule word by word: group by level, look at the
// levels from the most preferred on, stop at the first with a known server.
func decideSlowly(records []net.MX) Provider {
	levels := make(map[uint16][]string)
	for _, mx := range records {
		levels[mx.Pref] = append(levels[mx.Pref], mx.Host)
	}
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		found := make(map[Provider]bool)
		for _, host := range levels[level] {
			found[ofServerSlowly(host)] = true
		}
		switch {
		case len(found) == 1 && found[None]:
			continue // nobody known here
		case len(found) == 1:
			return slices.Collect(maps.Keys(found))[0]
		default:
			return None
		}
	}
	return None
}

func ofServerSlowly(host string) Provider {
	if strings.Contains(host, `\`) {
		return None
	}
	labels := strings.Split(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	under := func(domain string) bool {
		suffix := strings.Split(domain, ".")
		return len(labels) >= len(suffix) && slices.Equal(labels[len(labels)-len(suffix):], suffix)
	}
	if under("yahoodns.net") {
		if strings.HasPrefix(labels[0], "mx-aol") {
			return AOL
		}
		return Yahoo
	}
	if under("smtp.goog") {
		return Gmail
	}
	if under("mx.microsoft") {
		return Outlook
	}
	for _, p := range providers {
		if slices.ContainsFunc(p.domains, under) {
			return p.provider
		}
	}
	return None
}

// parseRecords reads "10 a., 20 b."; what does not parse is left out.
func parseRecords(s string) []net.MX {
	var records []net.MX
	for part := range strings.SplitSeq(s, ",") {
		var mx net.MX
		if n, _ := fmt.Sscan(part, &mx.Pref, &mx.Host); n == 2 {
			records = append(records, mx)
		}
	}
	return records
}
