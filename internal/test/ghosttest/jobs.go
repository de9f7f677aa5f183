package ghosttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// EndExpired has the Ghost end complimentary memberships that have expired, as its own
// job does once a day: the job's script is run beside it, on the same database.
func (g *Ghost) EndExpired(t testing.TB) {
	t.Helper()
	process := fmt.Sprintf("/proc/%d/", g.PID)
	command, err := os.ReadFile(process + "cmdline")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	_, rest, _ := bytes.Cut(command, []byte{0})
	script, _, _ := bytes.Cut(rest, []byte{0})
	environment, err := os.ReadFile(process + "environ")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	folder, err := os.Readlink(g.Folder()) // Ghost's configuration is looked for in it
	if err != nil {
		t.Fatalf("os.Readlink: %v", err)
	}
	job := exec.CommandContext(t.Context(), process+"exe", filepath.Join(filepath.Dir(string(script)), "core/server/services/members/jobs/clean-expired-comped.js"))
	job.Dir, job.WaitDelay = folder, time.Second
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		job.Env = append(job.Env, string(variable))
	}
	if said, err := job.CombinedOutput(); err != nil {
		t.Fatalf("ending expired memberships: %v: %s", err, said)
	}
}
