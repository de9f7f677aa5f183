package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// watchInterval is how often a theme that is watched is looked at. What has changed is
// validated at the second look that finds it as it is, so that a file is not read while
// an editor writes it.
const watchInterval = 250 * time.Millisecond

// watch validates a theme, and again whenever it changes, until Ctrl-C or ctx ends. It
// fails if there is nothing to validate when it starts. With isSeparated, a line with the
// time comes before each further validation.
func (v validation) watch(ctx context.Context, isSeparated bool) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if info, err := os.Stat(v.name); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return errors.New("--watch needs something that can change: name a theme's folder, its zip, or a manifest file")
	}
	validated := v.state()
	if _, err := v.run(); err != nil {
		return err
	}
	fmt.Fprintln(v.notes, "Watching for changes. Ctrl-C ends it.")
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for last := validated; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := v.state()
		if now == last && now != validated {
			validated = now
			if isSeparated {
				fmt.Fprintf(v.out, "\n——— %s ———\n", time.Now().Format(time.TimeOnly))
			}
			if _, err := v.run(); err != nil {
				fmt.Fprintf(v.notes, "Error: %s\n", printable(err.Error()))
			}
		}
		last = now
	}
}

// state differs once anything has changed that the validation reads.
func (v validation) state() string {
	name := v.name
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, v.fileName)
	}
	info, err := os.Stat(name)
	if err != nil {
		return err.Error()
	}
	state := fmt.Sprint(info.ModTime().UnixNano(), info.Size())
	if v.isStrict {
		templates, err := themes.Templates(v.name, v.fileName)
		state += fmt.Sprint(err)
		if err == nil {
			state += fmt.Sprintf("%x", templates.Sum())
		}
	}
	return state
}
