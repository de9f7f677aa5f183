package git

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
)

// git makes the pack, so some of its files are deltas of others.
func aPack(tb testing.TB) ([]byte, plumbing.Hash) {
	tb.Helper()
	repository := tb.TempDir()
	gittest.Run(tb, "", "init", "-q", "--bare", repository)
	base := strings.Repeat("a line that is like no other\n", 20) + noise(200)
	gittest.Run(tb, "commit refs/heads/main\ncommitter a <a@example.com> 1700000000 +0000\ndata 1\na\n"+
		"M 100644 inline "+name+"\ndata 2\na\n\n"+
		"M 100644 inline one\ndata <<END OF FILE\n"+base+"\nEND OF FILE\n"+
		"M 100644 inline two\ndata <<END OF FILE\n"+base+"x\nEND OF FILE\n", "-C", repository, "fast-import", "--quiet")
	commit := strings.TrimSpace(gittest.Run(tb, "", "-C", repository, "rev-parse", "main"))
	return []byte(gittest.Run(tb, "main\n", "-C", repository, "pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset")), plumbing.NewHash(commit)
}

func TestUnpackFindsFilesOfACommit(t *testing.T) {
	pack, commit := aPack(t)
	found, err := unpack(t.Context(), bytes.NewReader(pack), 64<<10)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if got, err := find(found, commit, name, false); err != nil || string(got) != "a\n" {
		t.Errorf("find = %q, %v, want no error, %q", got, err, "a\n")
	}
	if _, err := find(found, commit, "three", false); !errors.Is(err, ErrNoFile) {
		t.Errorf("error %v, want %v", err, ErrNoFile)
	}
	if got, err := find(found, plumbing.ZeroHash, name, true); err == nil || errors.Is(err, ErrNoFile) {
		t.Errorf("a commit that is not there: %q, %v", got, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := unpack(ctx, bytes.NewReader(pack), 64<<10); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	for n := range pack {
		if _, err := unpack(t.Context(), bytes.NewReader(pack[:n]), 64<<10); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a pack", n, len(pack))
		}
	}
	many := bytes.Clone(pack)
	many[8] = 1 // 16 million
	if _, err := unpack(t.Context(), bytes.NewReader(many), 64<<10); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("error %v, want one of a repository that is too large", err)
	}
}

// No pack makes it panic, or say that the file is not there.
func FuzzUnpack(f *testing.F) {
	pack, commit := aPack(f)
	f.Add(pack)
	f.Fuzz(func(t *testing.T, pack []byte) {
		found, err := unpack(t.Context(), bytes.NewReader(pack), 64<<10)
		if err != nil {
			return
		}
		if got, err := find(found, commit, name, false); err == nil && string(got) != "a\n" || errors.Is(err, ErrNoFile) {
			t.Errorf("find = %q, %v, want %q or an error, and not ErrNoFile", got, err, "a\n")
		}
	})
}
