package standin_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/standin"
)

// open starts Ghosts, and has an edge's client ask one in a subdirectory.
func open(t *testing.T) (*standin.Ghosts, *ghost.Client) {
	t.Helper()
	g := standin.New(0)
	t.Cleanup(g.Close)
	client, err := ghost.New(ghost.Config{URL: g.URL + "/daily", AdminKey: standin.AdminKey})
	if err != nil {
		t.Fatalf("ghost.New: %v", err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := g.Problem(); err != nil {
			t.Errorf("g.Problem: %v", err)
		}
	})
	return g, client
}

// An edge that creates, finds, changes and deletes a member at the stand-in gets what Ghost would
// send. Otherwise a benchmark measures failures.
func TestStandInKeepsMembersAsGhostDoes(t *testing.T) {
	g, client := open(t)
	made, err := client.Create(t.Context(), platform.Member{Email: "Jane@example.com", Name: "Jane", Labels: []string{"crm"}, Subscribed: true})
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	if _, err := client.Create(t.Context(), platform.Member{Email: "joe@example.com"}); err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	want := platform.Member{
		ID: made.ID, UUID: made.UUID, Email: "Jane@example.com", Name: "Jane", Labels: []string{"crm"}, Subscribed: true,
		Newsletters: made.Newsletters, Status: "free", CreatedAt: made.CreatedAt, UpdatedAt: made.UpdatedAt,
	}
	found, err := client.FindByEmail(t.Context(), "jane@example.com")
	if err != nil {
		t.Fatalf("client.FindByEmail: %v", err)
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("the member by email (-want +got):\n%s", diff)
	}
	want.Name, want.Subscribed, want.Newsletters = "Jane Doe", false, []string{}
	changed, err := client.Update(t.Context(), made.ID, platform.Change{Name: &want.Name, Subscription: &platform.Subscription{}})
	if err != nil {
		t.Fatalf("client.Update: %v", err)
	}
	if diff := cmp.Diff(want, changed, cmpopts.EquateApproxTime(time.Minute)); diff != "" {
		t.Errorf("the member after a change (-want +got):\n%s", diff)
	}
	page, total, err := client.List(t.Context(), made.ID, time.Now().Add(-time.Hour))
	if err != nil || total != 1 || len(page) != 1 || page[0].Email != "joe@example.com" {
		t.Errorf("behind the first: got %v of %d, %v, want joe@example.com alone", page, total, err)
	}
	if err := client.Delete(t.Context(), made.ID); err != nil {
		t.Fatalf("client.Delete: %v", err)
	}
	if _, err := client.Get(t.Context(), made.ID); !errors.Is(err, platform.ErrNotFound) {
		t.Errorf("a deleted member: got %v, want %v", err, platform.ErrNotFound)
	}
	if diff := cmp.Diff(map[string]int{"joe@example.com": 1}, g.Emails("daily")); diff != "" {
		t.Errorf("emails (-want +got):\n%s", diff)
	}
}

// A member that edges create twice is seen, although a real Ghost would refuse the second.
func TestMembersCreatedTwiceAreCounted(t *testing.T) {
	g, client := open(t)
	for range 2 {
		if _, err := client.Create(t.Context(), platform.Member{Email: "jane@example.com"}); err != nil {
			t.Fatalf("client.Create: %v", err)
		}
	}
	if diff := cmp.Diff(map[string]int{"jane@example.com": 2}, g.Emails("daily")); diff != "" {
		t.Errorf("emails (-want +got):\n%s", diff)
	}
}

func TestReadersAndStaffAreKnownBySessions(t *testing.T) {
	g, client := open(t)
	g.Add("daily", standin.Member{UUID: "0a", Email: "jane@example.com", Name: "Jane"})
	reader, err := client.Reader(t.Context(), "ghost-members-ssr=0a; ghost-members-ssr.sig=x")
	if err != nil {
		t.Fatalf("client.Reader: %v", err)
	}
	if diff := cmp.Diff(platform.Reader{UUID: "0a", Email: "jane@example.com", Name: "Jane"}, reader); diff != "" {
		t.Errorf("the reader (-want +got):\n%s", diff)
	}
	there, err := client.MembersOf(t.Context(), []string{"0a", "0b"})
	if diff := cmp.Diff([]string{"0a"}, there); diff != "" || err != nil {
		t.Errorf("members by UUID: %v (-want +got):\n%s", err, diff)
	}
	visitor := platform.Visitor{Cookie: "ghost-admin-api-session=ada", Origin: g.URL}
	editor, err := client.Staff(t.Context(), visitor)
	if err != nil {
		t.Fatalf("client.Staff: %v", err)
	}
	want := platform.StaffMember{ID: "ada", Name: "ada", Roles: []string{"Editor"}, Permissions: platform.Permissions{ManageManifests: true}, Scheme: "light"}
	if diff := cmp.Diff(want, editor); diff != "" {
		t.Errorf("the editor (-want +got):\n%s", diff)
	}
	themes, err := client.Installed(t.Context(), visitor)
	if diff := cmp.Diff([]platform.InstalledTheme{{Name: standin.Theme, IsActive: true}}, themes); diff != "" || err != nil {
		t.Errorf("themes: %v (-want +got):\n%s", err, diff)
	}
}
