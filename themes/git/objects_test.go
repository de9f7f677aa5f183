package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// aPack returns a pack of git's with a few files, some made from others, and
// its commit.
func aPack(tb testing.TB) ([]byte, plumbing.Hash) {
	tb.Helper()
	binary, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			tb.Fatal(err)
		}
		tb.Skip("needs git: apt-get install git")
	}
	run := func(stdin string, args ...string) []byte {
		command := exec.Command(binary, args...)
		command.Env = append(command.Environ(), environment...)
		command.Dir = tb.TempDir()
		command.Stdin = strings.NewReader(stdin)
		out, err := command.Output()
		if err != nil {
			tb.Fatalf("git %v: %v", args, err)
		}
		return out
	}
	repository := tb.TempDir()
	run("", "init", "-q", "--bare", repository)
	base := strings.Repeat("a line that is like no other\n", 20) + noise(200)
	run("commit refs/heads/main\ncommitter a <a@example.com> 1700000000 +0000\ndata 1\na\n"+
		"M 100644 inline "+name+"\ndata 2\na\n\n"+
		"M 100644 inline one\ndata <<END OF FILE\n"+base+"\nEND OF FILE\n"+
		"M 100644 inline two\ndata <<END OF FILE\n"+base+"x\nEND OF FILE\n", "-C", repository, "fast-import", "--quiet")
	commit := strings.TrimSpace(string(run("", "-C", repository, "rev-parse", "main")))
	return run("main\n", "-C", repository, "pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset"), plumbing.NewHash(commit)
}

func TestUnpack(t *testing.T) {
	pack, commit := aPack(t)
	found, err := unpack(t.Context(), pack, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := find(found, commit, name, false); err != nil || string(got) != "a\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := find(found, commit, "three", false); !errors.Is(err, ErrNoFile) {
		t.Error(err)
	}
	if got, err := find(found, plumbing.ZeroHash, name, true); err == nil || errors.Is(err, ErrNoFile) {
		t.Errorf("a commit that is not there: %q, %v", got, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := unpack(ctx, pack, 64<<10); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for n := range len(pack) - 20 {
		if _, err := unpack(t.Context(), pack[:n], 64<<10); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a pack", n, len(pack))
		}
	}
	many := bytes.Clone(pack)
	many[8] = 1 // 16 million
	if _, err := unpack(t.Context(), many, 64<<10); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
}

// No pack makes it panic, or say that the file is not there.
func FuzzUnpack(f *testing.F) {
	pack, commit := aPack(f)
	f.Add(pack)
	f.Fuzz(func(t *testing.T, pack []byte) {
		found, err := unpack(t.Context(), pack, 64<<10)
		if err != nil {
			return
		}
		if got, err := find(found, commit, name, false); err == nil && string(got) != "a\n" || errors.Is(err, ErrNoFile) {
			t.Errorf("%q, %v", got, err)
		}
	})
}
