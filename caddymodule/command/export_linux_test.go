package command_test

import (
	"io"
	"os/exec"
	"syscall"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// An export of many members takes no more memory than one of few.
func TestExportMemory(t *testing.T) {
	t.Parallel()
	folder, db, _ := siteFolder(t)
	fill := func(from, to int) {
		t.Helper()
		_, err := db.Write.ExecContext(t.Context(), `INSERT INTO members (guid, site, email, email_key, name, note, subscribed, labels,
				newsletters, status, created_at, updated_at, version, applied, deleted, sent_email, sent_key, sent_at, unanswered_at,
				attempts, next_attempt, problem, lease_owner, lease_until)
			WITH RECURSIVE n (i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i < $2)
			SELECT printf('guid-%06d', i), 'daily', i || '@example.com', i || '@example.com', '', hex(zeroblob(1000)), TRUE, '[]',
				'null', 'free', 0, 0, 1, 1, FALSE, '', '', 0, 0, 0, 0, '', '', 0 FROM n`, from, to)
		if err != nil {
			t.Fatalf("db.Write.ExecContext: %v", err)
		}
	}
	// written is in bytes, and memory the peak in KiB.
	export := func() (written, memory int64) {
		t.Helper()
		command := exec.Command(caddytest.Build(t), "lychgate", "members", "export", "--site", "daily")
		command.Dir = folder
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatalf("command.StdoutPipe: %v", err)
		}
		if err := command.Start(); err != nil {
			t.Fatalf("command.Start: %v", err)
		}
		written, _ = io.Copy(io.Discard, out)
		if err := command.Wait(); err != nil {
			t.Fatalf("command.Wait: %v", err)
		}
		return written, command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	}
	fill(1, 2_000)
	_, few := export()
	fill(2_001, 40_000)
	written, many := export()
	if written < 80e6 || many > few+30_000 {
		t.Errorf("%d bytes were written with %d KiB, of 2,000 members with %d KiB", written, many, few)
	}
}
