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

// endExpired is the job of a Ghost that has it as a function, such as 6.65. It tells its listeners of nobody.
const endExpired = `const core = process.argv[1];
	require(core + "/server/services/members/jobs/clean-expired-comped-task").default({
		db: require(core + "/server/data/db"), events: {emit() {}}, logging: console, sentry: {},
		models: {Member: {findOne() { throw Object.assign(new Error("nobody listens"), {name: "NotFoundError"}); }}},
	}).then(() => process.exit(0), error => { console.error(error); process.exit(1); });`

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
	core := filepath.Join(filepath.Dir(string(script)), "core")
	args := []string{filepath.Join(core, "server/services/members/jobs/clean-expired-comped.js")}
	if _, err := os.Stat(args[0]); err != nil {
		args = []string{"-e", endExpired, core}
	}
	job := exec.CommandContext(t.Context(), process+"exe", args...)
	job.Dir, job.WaitDelay = folder, time.Second
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		job.Env = append(job.Env, string(variable))
	}
	if said, err := job.CombinedOutput(); err != nil {
		t.Fatalf("ending expired memberships: %v: %s", err, said)
	}
}
