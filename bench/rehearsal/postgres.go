package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
)

// postgres is a server with a synchronous replica, which has each transaction before its commit
// is confirmed.
type postgres struct {
	source string // names both, of which one can be written at a time

	primary *dbtest.Server
	replica *exec.Cmd
	second  string // the connection string of the replica alone
	pids    []int  // of both servers
	folder  string
	ended   chan struct{} // closed when the replica has ended
}

// startTimeout is how long a server may take to start.
const startTimeout = time.Minute

// openPostgres starts both servers.
func openPostgres(ctx context.Context) (*postgres, error) {
	primary, err := dbtest.OpenServer()
	if err != nil {
		return nil, err
	}
	p := &postgres{primary: primary}
	if err := p.replicate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the replica: %w", err), p.close())
	}
	return p, nil
}

func (p *postgres) replicate(ctx context.Context) (err error) {
	if p.folder, err = os.MkdirTemp("", "lychgate-replica-"); err != nil {
		return err
	}
	pid, err := p.primaryPID(ctx)
	if err != nil {
		return err
	}
	p.pids = []int{pid}
	config, err := pgx.ParseConfig(p.primary.Source)
	if err != nil {
		return err
	}
	port, err := freeport.Find()
	if err != nil {
		return err
	}
	first, second := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), net.JoinHostPort(config.Host, port)
	p.second = fmt.Sprintf("postgres://%s@%s/%s", config.User, second, config.Database)
	p.source = fmt.Sprintf("postgres://%s@%s,%s/%s?target_session_attrs=read-write", config.User, first, second, config.Database)
	data := filepath.Join(p.folder, "data")
	// The copy brings a file that makes the server a replica of the first.
	backup, err := p.command("pg_basebackup", "--pgdata="+data, "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast",
		"--host="+config.Host, "--port="+strconv.Itoa(int(config.Port)), "--username="+config.User)
	if err != nil {
		return err
	}
	if output, err := backup.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w: %s", err, output)
	}
	if p.replica, err = p.command("postgres", "-D", data, "-h", config.Host, "-p", port, "-k", p.folder); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p.replica.Stdout, p.replica.Stderr = log, log
	if err := p.replica.Start(); err != nil {
		return err
	}
	p.pids = append(p.pids, p.replica.Process.Pid)
	p.ended = make(chan struct{})
	go func() {
		_ = p.replica.Wait() // the log says why it ended
		close(p.ended)
	}()
	if err := p.synchronize(ctx); err != nil {
		text, _ := os.ReadFile(log.Name()) // only helps
		return fmt.Errorf("%w; its log: %s", err, text)
	}
	return nil
}

// command prepares one of PostgreSQL's programs, which run as the user postgres for root.
func (p *postgres) command(name string, args ...string) (*exec.Cmd, error) {
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(folders) == 0 {
		return nil, errors.New("needs Debian's package postgresql")
	}
	command := exec.Command(filepath.Join(slices.Max(folders), name), args...)
	command.Dir = p.folder
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() != 0 {
		return command, nil
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, uidErr := strconv.ParseUint(owner.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(owner.Gid, 10, 32)
	command.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return command, errors.Join(uidErr, gidErr, os.Chown(p.folder, int(uid), int(gid)))
}

// synchronize has each commit wait for the replica, once that is there.
func (p *postgres) synchronize(ctx context.Context) error {
	return withDatabase(ctx, p.primary.Source, func(db *database.DB) error {
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
			if err := p.await(ctx, db, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')"); err != nil {
				return err
			}
			if _, err := db.Write.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return p.await(ctx, db, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
	})
}

// await waits until a query is true.
func (p *postgres) await(ctx context.Context, db *database.DB, query string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		var isTrue bool
		if err := db.Read.QueryRowContext(ctx, query).Scan(&isTrue); isTrue || err != nil {
			return err
		}
		select {
		case <-p.ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s", query, startTimeout)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// primaryPID is the process ID of the first server.
func (p *postgres) primaryPID(ctx context.Context) (int, error) {
	var data string
	err := withDatabase(ctx, p.primary.Source, func(db *database.DB) error {
		return db.Read.QueryRowContext(ctx, "SHOW data_directory").Scan(&data)
	})
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(first)
}

// failOver ends the first server as a power cut would, and has the replica take writes.
func (p *postgres) failOver(ctx context.Context) error {
	if err := syscall.Kill(p.pids[0], syscall.SIGQUIT); err != nil { // PostgreSQL's immediate shutdown: nothing is written any more
		return err
	}
	return withDatabase(ctx, p.second, func(db *database.DB) error {
		_, err := db.Write.ExecContext(ctx, "SELECT pg_promote()")
		return err
	})
}

// close ends both, and removes their data.
func (p *postgres) close() error {
	if p.ended != nil {
		_ = p.replica.Process.Signal(syscall.SIGQUIT) // it may have ended
		<-p.ended
	}
	return errors.Join(p.primary.Close(), os.RemoveAll(p.folder))
}

func withDatabase(ctx context.Context, source string, do func(*database.DB) error) error {
	db, err := database.Open(ctx, database.Postgres, source)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}
