package redis

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// permitted is what the documentation says that a user needs.
const permitted = "ACL SETUSER edge on >s3cret ~* -@all +hello +auth +ping +select +client +eval +evalsha +get +set +del +pttl +time"

// With Sentinels the edges follow them to the server that takes writes, without anything
// in between, and come back from a start without the first of them.
func TestSentinelsLeadToTheWritableServer(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	first := redistest.Start(t, "--requirepass "+secret, "--masterauth "+secret)
	_, port, err := net.SplitHostPort(first.Address)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	second := redistest.Start(t, "--requirepass "+secret, "--masterauth "+secret, "--replicaof 127.0.0.1 "+port)
	sentinel := redistest.StartSentinel(t, first, "sentinel auth-pass mymaster "+secret, "requirepass other")
	for _, server := range []*redistest.Server{first, second} {
		server.Command("--no-auth-warning -a " + secret + " " + permitted + " +role")
	}
	address := "edge:" + secret + "@127.0.0.1:1?addr=" + sentinel.Address + "&master_set=mymaster&sentinel_password=other"
	if got, want := Place("redis://"+address), "redis://127.0.0.1:1?addr="+sentinel.Address+"&master_set=mymaster"; got != want {
		t.Errorf("its place is %s, want %s", got, want)
	}
	wait.Until(t, func() string {
		if got := sentinel.Command("--no-auth-warning -a other SENTINEL replicas mymaster"); !strings.Contains(got, second.Address) {
			return "the replica is not known: " + got
		}
		return ""
	})
	client, _ := start(t, address)
	waitUp(t, client)
	if _, err := client.Run(echo, "before", "x"); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	first.Kill()
	wait.Until(t, func() string {
		if _, err := client.Run(echo, "after", "x"); err != nil {
			return err.Error()
		}
		return ""
	})
	if got := second.Command("--no-auth-warning -a " + secret + " GET after"); got != "x" {
		t.Errorf("the second has %q", got)
	}
}

// In a Cluster each key is where it belongs, and while a node is away the edges go on by
// themselves, at times with what is left.
func TestClusterKeysGoToTheirNodes(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t)
	for _, node := range nodes {
		node.Command(permitted + " +cluster +asking")
	}
	client, _ := start(t, "edge:s3cret@"+nodes[0].Address+"?addr="+nodes[1].Address+"&addr="+nodes[2].Address)
	waitUp(t, client)
	for i := range 30 {
		if got, err := client.Run(echo, fmt.Sprint("key", i), "x"); got != "x" || err != nil {
			t.Fatalf(`Run = %q, %v, want "x", no error`, got, err)
		}
	}
	kept := 0
	for i, node := range nodes {
		size := strings.Count(node.Command("KEYS key*"), "key")
		if size == 0 {
			t.Errorf("node %d has no key", i)
		}
		kept += size
	}
	if kept != 30 {
		t.Errorf("%d keys are kept", kept)
	}
	for i := range nodes {
		nodes[i].Kill()
		wait.Until(t, func() string {
			for n := range 30 {
				if _, err := client.Run(echo, fmt.Sprint("key", n), "x"); err != nil {
					return ""
				}
			}
			return "nothing is missed"
		})
		nodes[i].Restart()
		nodes[i].Command(permitted + " +cluster +asking")
		wait.Until(t, func() string {
			for n := range 30 {
				if _, err := client.Run(echo, fmt.Sprint("key", n), "x"); err != nil {
					return err.Error()
				}
			}
			return ""
		})
	}
}

// The longest text that an edge asks for gets through: a rate limit of 65,535 requests that is
// used up.
func TestLongText(t *testing.T) {
	client, _ := start(t, redistest.Start(t).Address)
	waitUp(t, client)
	const most = 8 * (65535 + 1)
	text, err := client.Run(`return string.rep('x', tonumber(ARGV[1]))`, "key", strconv.Itoa(most))
	if len(text) != most || err != nil {
		t.Errorf("a text of %d bytes, %v, want %d", len(text), err, most)
	}
}
