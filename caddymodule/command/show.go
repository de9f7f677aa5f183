package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lychgate/caddy-lychgate/internal/members"
)

func showCommand() *cobra.Command {
	show := &cobra.Command{
		Use: "show <guid>", Short: "Shows whom a guid of the log or of the admin API names", Args: one("the member"),
		Long: `
Shows a member, and what of the last writes the publishing platform does not have
yet. The guid is that of Caddy's log, of the admin API or of an export.
`,
	}
	show.RunE = withStoreThatIs(func(ctx context.Context, out io.Writer, s *siteStore, args []string) error {
		m, err := s.store.Find(ctx, members.Key{Site: s.site, GUID: args[0]})
		if errors.Is(err, members.ErrNotFound) {
			if strings.Contains(args[0], "@") {
				return errors.New("name the member by its guid: caddy lychgate members export has those of all members, and the log and /lychgate/pending on the admin API those of pending ones")
			}
			return fmt.Errorf("site %s has no member %s: write a guid, as caddy lychgate members export lists them", s.site, args[0])
		}
		if err != nil {
			return err
		}
		return printMember(out, m)
	})
	return show
}

// printMember prints a record for people, each field that has a value on a line.
func printMember(w io.Writer, m members.Record) error {
	out := bufio.NewWriter(w)
	line := func(name, value string) {
		if value == "" {
			return
		}
		for i, text := range splitLines(value) {
			if i == 0 {
				text = fmt.Sprintf("%-17s%s", name+":", printable(text))
			} else {
				text = strings.Repeat(" ", 17) + printable(text)
			}
			fmt.Fprintln(out, strings.TrimRight(text, " "))
		}
	}
	line("GUID", m.GUID)
	line("Deleted", when(m.Deleted, "yes"))
	line("Email", m.Email)
	line("Name", m.Name)
	line("Note", m.Note)
	line("Subscribed", cmp.Or(when(m.Subscribed, "yes"), "no"))
	line("Newsletters", newsletters(m.Newsletters))
	line("Labels", strings.Join(m.Labels, ", "))
	line("Tier", orEmpty(m.TierID))
	line("Status", m.Status)
	line("Created", shownTime(m.CreatedAt))
	line("Updated", shownTime(m.UpdatedAt))
	line("ID in Ghost", m.PlatformID)
	line("Pending", pending(m))
	if m.IsPending() {
		line("Failed attempts", strconv.FormatInt(m.Attempts, 10))
	}
	line("Last problem", m.Problem)
	if m.IsPending() {
		line("Next attempt", nextAttempt(m))
	}
	line("Refused", when(m.Refused != "", fmt.Sprintf("at %s: %s", shownTime(m.RefusedAt), m.Refused)))
	line("Sent to Ghost", when(m.Sent != "", fmt.Sprintf("as %s at %s, outcome unknown", m.Sent, shownTime(m.SentAt))))
	line("Unanswered", when(!m.UnansweredAt.IsZero(), shownTime(m.UnansweredAt)))
	return out.Flush()
}

// fieldNames are those of the API.
var fieldNames = map[members.Field]string{
	members.EmailField: "email", members.NameField: "name", members.NoteField: "note", members.LabelsField: "labels",
	members.SubscriptionField: "is_subscribed and newsletters",
}

// pending says whether the platform does not have the last write, and what of it.
func pending(m members.Record) string {
	switch {
	case !m.IsPending():
		return "no"
	case m.Deleted:
		return "yes, the deletion"
	}
	var names []string
	for _, f := range members.PlatformFields() {
		if m.HasPending(f) {
			names = append(names, fieldNames[f])
		}
	}
	if len(names) == 0 {
		return "yes"
	}
	return "yes: " + strings.Join(names, ", ")
}

func nextAttempt(m members.Record) string {
	if m.NextAttempt.IsZero() {
		return "as soon as Caddy runs"
	}
	return shownTime(m.NextAttempt)
}

func newsletters(list []members.Newsletter) string {
	var names []string
	for _, n := range list {
		if n.IsActive() {
			names = append(names, n.ID)
		} else {
			names = append(names, n.ID+" (inactive)")
		}
	}
	return strings.Join(names, ", ")
}
