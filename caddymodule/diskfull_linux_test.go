package caddymodule_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// smallDisk mounts a file system of 8 MiB in memory.
func smallDisk(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=8m"); err != nil {
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			t.Fatalf("syscall.Mount: %v", err)
		}
		t.Skipf("needs to mount a small file system, as root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Errorf("syscall.Unmount: %v", err)
		}
	})
	return folder
}

// fill leaves no room on the disk that a file is on.
func fill(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatalf("os.Create: %v", err)
	}
	defer file.Close()
	for _, size := range []int{64 << 10, 512} {
		for err = nil; err == nil; {
			_, err = io.WriteString(file, strings.Repeat("x", size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("err: %v, want %v", err, syscall.ENOSPC)
		}
	}
}

// On a full disk writes are refused whole, reads and lookups go on, and when
// there is room again all is as if nothing had been, without a restart.
func TestDiskFull(t *testing.T) {
	p := startGhostProxy(t, "disk-full")
	disk := smallDisk(t)
	e, admin := startFaultEdge(t, "sqlite "+filepath.Join(disk, "lychgate.db"), p)
	anna, bert, carl := person{p.email("anna"), "Anna", []string{"a"}}, person{p.email("bert"), "Bert", []string{"b"}}, person{p.email("carl"), "Carl", []string{"c"}}
	for _, who := range []person{anna, bert, carl} {
		e.followInGhost(p, []step{{"POST", "", bodyOf(who), responseOf(who, "created")}})
	}

	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	want := []person{anna, bert, carl}
	known := []string{anna.Email, bert.Email, carl.Email}
	// There is a little room in SQLite's files still.
	for n, refused := 0, 0; refused < 10; n++ {
		who := person{p.email(fmt.Sprint("m", n)), "Made", []string{}}
		known = append(known, who.Email)
		got, err := e.at(p, "POST", "", bodyOf(who))
		switch {
		case err == nil && strings.Contains(got.Body, `"success":true`):
			want, refused = append(want, who), 0
		case err == nil && cmp.Equal(internalError, got):
			refused++
		default:
			t.Fatalf("got %v, %v, want success or an internal error", got, err)
		}
		if n > 2000 {
			t.Fatalf("%d members were written, want the disk to be full before that", n)
		}
	}
	changed := person{anna.Email, "Changed", []string{"changed"}}
	e.follow(p, []step{
		{"PUT", "/" + anna.Email, bodyOf(changed), internalError},
		{"DELETE", "/" + bert.Email, "", internalError},
		{"POST", "", bodyOf(person{p.email("nobody"), "", []string{}}), internalError},
		{"GET", "/" + anna.Email, "", responseOf(anna, "retrieved")},
		{"GET", "/" + bert.Email, "", responseOf(bert, "retrieved")},
		{"GET", "/" + p.email("nobody"), "", enveloped(404, `{"success":false,"message":"Member not found.","code":"not_found"}`)},
	})
	if got := e.do("GET", "/ghost/inbox-provider?domain=gmail.com", "Host", p.site+".example.com"); got.Status != 200 || got.Body != `{"provider":"gmail"}` {
		t.Errorf("a lookup: %v", got)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatalf("os.Remove: %v", err)
	}
	dora := person{p.email("dora"), "Dora", []string{"d"}}
	e.followInGhost(p, []step{
		{"PUT", "/" + anna.Email, bodyOf(changed), responseOf(changed, "updated")},
		{"DELETE", "/" + bert.Email, "", deleted()},
		{"POST", "", bodyOf(dora), responseOf(dora, "created")},
	})
	drain(t, admin, p.site)
	want[0], want[1] = changed, dora
	known = append(known, dora.Email, p.email("nobody"))
	p.compare(want, known, e.get(p))
	// The same after the database was closed and opened.
	e.load("{\n{{global}}\n{{admin}}\n}\n")
	e.load(faultConfig("sqlite "+filepath.Join(disk, "lychgate.db"), p))
	p.compare(want, known, e.get(p))
	p.keepsSecrets(e.logFile, "members API request failed")
}
