package membersapi_test

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

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
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
	p := edgetest.StartGhostProxy(t, "disk-full")
	disk := smallDisk(t)
	e, admin := startFaultEdge(t, "sqlite "+filepath.Join(disk, "lychgate.db"), p)
	anna, bert, carl := edgetest.Person{p.Email("anna"), "Anna", []string{"a"}}, edgetest.Person{p.Email("bert"), "Bert", []string{"b"}}, edgetest.Person{p.Email("carl"), "Carl", []string{"c"}}
	for _, who := range []edgetest.Person{anna, bert, carl} {
		followInGhost(e, p, []step{{"POST", "", edgetest.BodyOf(who), edgetest.ResponseOf(who, "created")}})
	}

	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	want := []edgetest.Person{anna, bert, carl}
	known := []string{anna.Email, bert.Email, carl.Email}
	// There is a little room in SQLite's files still.
	for n, refused := 0, 0; refused < 10; n++ {
		who := edgetest.Person{p.Email(fmt.Sprint("m", n)), "Made", []string{}}
		known = append(known, who.Email)
		got, err := at(e, p, "POST", "", edgetest.BodyOf(who))
		switch {
		case err == nil && strings.Contains(got.Body, `"success":true`):
			want, refused = append(want, who), 0
		case err == nil && cmp.Equal(edgetest.InternalError, got):
			refused++
		default:
			t.Fatalf("got %v, %v, want success or an internal error", got, err)
		}
		if n > 2000 {
			t.Fatalf("%d members were written, want the disk to be full before that", n)
		}
	}
	changed := edgetest.Person{anna.Email, "Changed", []string{"changed"}}
	follow(e, p, []step{
		{"PUT", "/" + anna.Email, edgetest.BodyOf(changed), edgetest.InternalError},
		{"DELETE", "/" + bert.Email, "", edgetest.InternalError},
		{"POST", "", edgetest.BodyOf(edgetest.Person{p.Email("nobody"), "", []string{}}), edgetest.InternalError},
		{"GET", "/" + anna.Email, "", edgetest.ResponseOf(anna, "retrieved")},
		{"GET", "/" + bert.Email, "", edgetest.ResponseOf(bert, "retrieved")},
		{"GET", "/" + p.Email("nobody"), "", exchange.JSON(404, `{"success":false,"message":"Member not found.","code":"not_found"}`)},
	})
	if got := e.Do("GET", "/ghost/inbox-provider?domain=gmail.com", "Host", p.Site+".example.com"); got.Status != 200 || got.Body != `{"provider":"gmail"}` {
		t.Errorf("a lookup: %v", got)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatalf("os.Remove: %v", err)
	}
	dora := edgetest.Person{p.Email("dora"), "Dora", []string{"d"}}
	followInGhost(e, p, []step{
		{"PUT", "/" + anna.Email, edgetest.BodyOf(changed), edgetest.ResponseOf(changed, "updated")},
		{"DELETE", "/" + bert.Email, "", edgetest.Deleted()},
		{"POST", "", edgetest.BodyOf(dora), edgetest.ResponseOf(dora, "created")},
	})
	edgetest.Drain(t, admin, p.Site)
	want[0], want[1] = changed, dora
	known = append(known, dora.Email, p.Email("nobody"))
	p.Compare(want, known, get(e, p))
	// The same after the database was closed and opened.
	e.Load("{\n{{global}}\n{{admin}}\n}\n")
	e.Load(faultConfig("sqlite "+filepath.Join(disk, "lychgate.db"), p))
	p.Compare(want, known, get(e, p))
	p.KeepsSecrets(e.LogFile, "members API request failed")
}
