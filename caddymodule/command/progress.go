package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
)

// progressInterval is how often a command says how far it is, off a terminal.
const progressInterval = 5 * time.Second

// storeWait is how long something may take before a command says that it waits for it.
const storeWait = 2 * time.Second

// progress says how far a command that works on many things is: with a bar on a
// terminal, with a line every progressInterval elsewhere.
type progress struct {
	out     io.Writer
	doing   string
	of      string                   // what is counted
	bar     *progressbar.ProgressBar // nil off a terminal
	ended   chan struct{}
	printed sync.WaitGroup

	mu          sync.Mutex
	seen, total int // total is 0 if it is not known
}

// startProgress says on standard error at once what a command does, with things of a
// name. End ends it.
func startProgress(doing, of string) *progress {
	return newProgress(os.Stderr, isTerminal(os.Stderr), doing, of)
}

func newProgress(out io.Writer, terminal bool, doing, of string) *progress {
	fmt.Fprintf(out, "%s …\n", doing)
	p := &progress{out: out, doing: doing, of: of, ended: make(chan struct{})}
	if terminal {
		p.bar = newBar(out, of)
		return p
	}
	p.printed.Go(p.printLines)
	return p
}

func newBar(out io.Writer, of string) *progressbar.ProgressBar {
	return progressbar.NewOptions(-1,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(strings.ToUpper(of[:1])+of[1:]),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(of),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionUseANSICodes(false),
	)
}

func (p *progress) printLines() {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-ticker.C:
			fmt.Fprintf(p.out, "%s: %s\n", p.doing, p.count())
		}
	}
}

func (p *progress) count() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := humanize.Comma(int64(p.seen))
	if p.total > 0 {
		text += " of " + humanize.Comma(int64(p.total))
	}
	return text + " " + p.of + " so far"
}

// set notes how many are done, of how many; 0 if that is not known.
func (p *progress) set(seen, total int) {
	p.mu.Lock()
	p.seen, p.total = seen, total
	p.mu.Unlock()
	if p.bar == nil {
		return
	}
	if total > 0 && p.bar.GetMax() != total {
		p.bar.ChangeMax(total)
	}
	_ = p.bar.Set(seen) // an error is a terminal that is gone
}

// say prints a line, above the bar if there is one.
func (p *progress) say(line string) {
	if p.bar != nil {
		_ = p.bar.Clear() // it is drawn again with the next change
	}
	fmt.Fprintln(p.out, line)
}

func (p *progress) end() {
	close(p.ended)
	p.printed.Wait()
	if p.bar != nil {
		fmt.Fprintln(p.out) // ends the bar's line
	}
}

// waitingLine says what is waited for, after a while and then every few seconds.
type waitingLine struct {
	stopped chan struct{} // nil while nothing is waited for
	printed sync.WaitGroup
}

func (w *waitingLine) start(out io.Writer, text string) {
	w.stop()
	stopped := make(chan struct{})
	w.stopped = stopped
	w.printed.Go(func() {
		for wait := storeWait; ; wait = progressInterval {
			select {
			case <-stopped:
				return
			case <-time.After(wait):
				fmt.Fprintln(out, text)
			}
		}
	})
}

func (w *waitingLine) stop() {
	if w.stopped != nil {
		close(w.stopped)
		w.stopped = nil
	}
	w.printed.Wait()
}
