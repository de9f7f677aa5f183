package membersapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// Two edges on one PostgreSQL, as processes, whose callers write the same
// members at the same time: each email is made once, no write is lost, and
// Ghost has what the edges have.
func TestTwoEdges(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "two-edges")
	config := edgetest.MembersConfig("postgres "+dbtest.PostgresSource(t), p.Platform())
	edges := []*edgetest.Process{edgetest.StartProcess(t, config), edgetest.StartProcess(t, config)}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()

	const emails = 6
	var known []string
	for n := range emails {
		known = append(known, p.Email(fmt.Sprint("m", n)))
	}
	// each has two callers at each edge send a request about each member, in
	// the case that the caller likes, and returns how often it was answered how.
	each := func(ask func(caller int, email string) (method, path, body string)) map[string]map[string]int {
		responses := make(map[string]map[string]int)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, email := range known {
			responses[email] = make(map[string]int)
		}
		for _, email := range known {
			for caller := range 4 {
				wg.Go(func() {
					method, path, body := ask(caller, email)
					text, err := edges[caller%2].Call(client, method, path, body)
					var response struct{ Message string }
					if err == nil {
						err = json.Unmarshal([]byte(text), &response)
					}
					if err != nil {
						t.Errorf("%s %s: got %s, %v, want JSON", method, path, text, err)
					}
					mu.Lock()
					defer mu.Unlock()
					responses[email][response.Message]++
				})
			}
		}
		wg.Wait()
		return responses
	}
	want := func(doing string, got map[string]map[string]int, want map[string]int) {
		t.Helper()
		for _, email := range known {
			if diff := cmp.Diff(want, got[email]); diff != "" {
				t.Errorf("%s %s: mismatch (-want +got):\n%s", doing, email, diff)
			}
		}
	}
	both := func(doing string) []edgetest.Person {
		t.Helper()
		for _, edge := range edges {
			edgetest.DrainTo(t, edgetest.AdminOf(t, edge.AdminSocket), "daily", true) // a slow Ghost may do what it did not answer after later writes
		}
		inGhost := p.InGhost()
		p.Down()
		defer p.Fix()
		for _, edge := range edges {
			if diff := cmp.Diff(inGhost, edgetest.AtEdge(t, func(email string) (string, error) { return edge.Call(client, "GET", "/"+email, "") }, known)); diff != "" {
				t.Errorf("%s: at an edge, and not in Ghost: %s", doing, diff)
			}
		}
		return inGhost
	}

	want("create", each(func(caller int, email string) (method, path, body string) {
		if caller > 1 {
			email = strings.ToUpper(email[:1]) + email[1:]
		}
		return "POST", "", edgetest.BodyOf(edgetest.Person{email, strconv.Itoa(caller), []string{fmt.Sprint("by ", caller)}})
	}), map[string]int{"Member created successfully.": 1, "The email is already taken.": 3})
	if got := both("create"); len(got) != emails {
		t.Errorf("%d members, want %d: %v", len(got), emails, got)
	}

	want("update", each(func(caller int, email string) (method, path, body string) {
		return "PUT", "/" + email, edgetest.BodyOf(edgetest.Person{email, strconv.Itoa(caller), []string{fmt.Sprint("by ", caller)}})
	}), map[string]int{"Member updated successfully.": 4})
	for _, who := range both("update") {
		if diff := cmp.Diff([]string{"by " + who.Name}, who.Labels); diff != "" {
			t.Errorf("%s is of two writers: %s", who.Email, diff)
		}
	}

	// Who changes, who removes and who makes anew is for chance to say.
	each(func(caller int, email string) (method, path, body string) {
		who := edgetest.Person{email, fmt.Sprint("again ", caller), []string{"again"}}
		switch caller {
		case 0:
			return "DELETE", "/" + email, ""
		case 1:
			return "POST", "", edgetest.BodyOf(who)
		}
		return "PUT", "/" + email, edgetest.BodyOf(who)
	})
	both("all at once")

	each(func(caller int, email string) (method, path, body string) {
		return "POST", "", edgetest.BodyOf(edgetest.Person{email, "last", []string{}})
	})
	want("delete", each(func(_ int, email string) (method, path, body string) {
		return "DELETE", "/" + email, ""
	}), map[string]int{"Member deleted successfully.": 1, "Member not found.": 3})
	if got := both("delete"); len(got) != 0 {
		t.Errorf("left after all were deleted: %v", got)
	}
	for _, edge := range edges {
		p.KeepsSecrets(edge.LogFile)
	}
}
