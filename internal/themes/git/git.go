// Package git reads one file of a theme from its git repository over HTTPS: the
// newest commit of one branch, without its history, into memory.
//
// What came of it is either the file or an error that is exactly one of
// [ErrNoFile], [ErrUnreachable], [ErrRejected] and [ErrFailed]. Only ErrNoFile
// says that the repository has been read and has no such file; a repository
// that cannot be seen is never taken for one without the file.
package git

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	requests "github.com/lychgate/caddy-lychgate/internal/lib/transport"
	"github.com/lychgate/caddy-lychgate/manifest"
)

const (
	defaultTimeout  = 30 * time.Second
	defaultMaxBytes = 64 << 20

	// defaultUser is what GitHub asks for beside a token; GitLab and Gitea take
	// any.
	defaultUser = "x-access-token"

	// maxHeaders bounds the headers of a response, in bytes.
	maxHeaders = 64 << 10

	// maxReason bounds the text of an error, in bytes: servers have much to say.
	maxReason = 400
)

// Config holds what a [Repository] is made from. URL is required.
type Config struct {
	// URL is where the repository is cloned from, such as
	// https://git.example.com/acme/nightly.git, with a slash at its end or without.
	// Plain HTTP is for this machine alone.
	URL string

	// Branch is the branch that is read. Default: the repository's own default.
	Branch string

	// Token is sent as the password of HTTP basic authentication, to the host
	// of URL and to no other. Default: nothing is sent.
	Token string

	// User is sent with the token. Default: x-access-token.
	User string

	// Timeout bounds each reading, without the wait for others. Default: 30
	// seconds.
	Timeout time.Duration

	// MaxBytes bounds what is received in one reading: the list of branches and
	// the files of one commit, compressed. Default: 64 MiB. A server that knows
	// partial clones leaves the files out that are larger than a manifest may
	// be, so this rarely matters. Unpacked, a file may be as large, and all of
	// them four times that; they are not in memory then. A reading takes this
	// much memory and some 100 MB at most, whatever the server sends.
	MaxBytes int64
}

// Repository is a git repository that files can be read from. It may be used by
// many goroutines at once; one reads, and the others wait.
type Repository struct {
	cfg      Config
	lock     chan struct{} // held by who reads; a caller may give up waiting for it
	host     string        // of the URL, with its port
	requests *requests.Transport
}

// New makes a Repository. It does not talk to its server yet.
func New(cfg Config) (*Repository, error) {
	// The URL is in no error: it may have credentials in it.
	address, err := url.Parse(cfg.URL)
	switch {
	case overSSH.MatchString(cfg.URL):
		return nil, errors.New("only HTTPS is supported: write the address that git clones from over HTTPS, such as https://git.example.com/acme/nightly.git, and a token if the repository is private")
	case err != nil || address.Hostname() == "" || address.Scheme != "https" && address.Scheme != "http":
		return nil, errors.New("not the address of a git repository, such as https://git.example.com/acme/nightly.git")
	case address.User != nil:
		return nil, errors.New("credentials in a repository's address end up in logs: write the token on its own")
	case address.RawQuery != "" || address.Fragment != "":
		return nil, fmt.Errorf("the address of a git repository on %s ends before any ? or #", address.Host)
	case !mayBeSent(address):
		return nil, fmt.Errorf("http is for repositories on this machine: use https for %s", address.Host)
	}
	cfg.URL = strings.TrimRight(cfg.URL, "/") // as git takes it
	cfg.User = cmp.Or(cfg.User, defaultUser)
	cfg.Timeout, cfg.MaxBytes = cmp.Or(cfg.Timeout, defaultTimeout), cmp.Or(cfg.MaxBytes, defaultMaxBytes)
	return &Repository{
		cfg:  cfg,
		lock: make(chan struct{}, 1),
		host: address.Host,
		requests: requests.New(requests.Config{
			Proxy:       http.ProxyFromEnvironment,
			IdleTimeout: 10 * time.Second,
			MaxHead:     maxHeaders,
		}),
	}, nil
}

// overSSH matches the other addresses that git takes.
var overSSH = regexp.MustCompile(`^(?:(?:ssh|git|git\+ssh|file)://|[\w.-]+@[\w.-]+:|/)`)

// ReadFile reads the file with that name at the root of the repository, as the newest
// commit of the branch has it. Of a file longer than [manifest.MaxSize] it returns one
// byte more than that, with no meaning: that the file is too long is all that is known.
func (r *Repository) ReadFile(ctx context.Context, name string) ([]byte, error) {
	x := &exchange{requests: r.requests, host: r.host, hasToken: r.cfg.Token != "", maxBytes: r.cfg.MaxBytes, left: r.cfg.MaxBytes}
	select {
	case r.lock <- struct{}{}:
		defer func() { <-r.lock }()
	case <-ctx.Done():
		return nil, r.explain(ctx, x, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	defer r.requests.CloseIdleConnections()

	content, err := r.read(ctx, x, name)
	if err != nil {
		return nil, r.explain(ctx, x, err)
	}
	return content, nil
}

func (r *Repository) read(ctx context.Context, x *exchange, name string) ([]byte, error) {
	if name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q is not the name of a file at the root", name)
	}
	endpoint, err := transport.NewEndpoint(r.cfg.URL)
	if err != nil {
		return nil, err
	}
	var auth transport.AuthMethod
	if r.cfg.Token != "" {
		auth = &githttp.BasicAuth{Username: r.cfg.User, Password: r.cfg.Token}
	}
	session, err := githttp.NewClient(&http.Client{Transport: x}).NewUploadPackSession(endpoint, auth)
	if err != nil {
		return nil, err
	}

	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, err
	}
	commit, err := tip(refs, r.cfg.Branch)
	if err != nil {
		return nil, err
	}
	refs.References, refs.Peeled, refs.Shallows = nil, nil, nil // which may take much memory
	pack, filtered, err := r.fetch(ctx, session, refs, commit)
	if err != nil {
		return nil, err
	}
	objects, err := unpack(ctx, pack, r.cfg.MaxBytes)
	if err != nil {
		return nil, err
	}
	return find(objects, commit, name, filtered)
}

func tip(refs *packp.AdvRefs, branch string) (plumbing.Hash, error) {
	if branch == "" {
		if refs.Head == nil {
			return plumbing.ZeroHash, errors.New("the repository's default branch has no commit: name a branch")
		}
		return *refs.Head, nil
	}
	commit, ok := refs.References[plumbing.NewBranchReferenceName(branch).String()]
	if !ok {
		return plumbing.ZeroHash, fmt.Errorf("there is no branch %q", branch)
	}
	return commit, nil
}

// fetch asks for the pack with all that belongs to the commit, but for files that are too
// long anyway, if the server filters.
func (r *Repository) fetch(
	ctx context.Context, session transport.UploadPackSession, refs *packp.AdvRefs, commit plumbing.Hash,
) (pack *spool, filtered bool, err error) {
	request := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	request.Wants = []plumbing.Hash{commit}
	want := []capability.Capability{capability.NoProgress}
	if refs.Capabilities.Supports(capability.Shallow) {
		want = append(want, capability.Shallow)
		request.Depth = packp.DepthCommits(1)
	}
	if filtered = refs.Capabilities.Supports(capability.Filter); filtered {
		want = append(want, capability.Filter)
		request.Filter = packp.FilterBlobLimit(manifest.MaxSize+1, packp.BlobLimitPrefixNone)
	}
	for _, c := range want {
		if refs.Capabilities.Supports(c) {
			if err := request.Capabilities.Set(c); err != nil {
				return nil, false, err
			}
		}
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = response.Close() }() // it has been read, or failed
	var content io.Reader = response
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		content = sideband.NewDemuxer(sideband.Sideband64k, response)
	case request.Capabilities.Supports(capability.Sideband):
		content = sideband.NewDemuxer(sideband.Sideband, response)
	}
	pack = new(spool)
	_, err = pack.ReadFrom(content)
	return pack, filtered, err
}

// find looks for the name at the root of the commit.
func find(objects *objects, commit plumbing.Hash, name string, filtered bool) ([]byte, error) {
	root, err := objects.treeOf(commit)
	if err != nil {
		return nil, err
	}
	file, mode, err := objects.entry(root, name)
	if err != nil {
		return nil, err
	}
	switch mode {
	case filemode.Regular, filemode.Executable, filemode.Deprecated:
	case filemode.Symlink:
		return nil, fmt.Errorf("a symbolic link is not followed: %s", name)
	default:
		return nil, fmt.Errorf("%s is not a file", name)
	}
	content, err := objects.content(file, plumbing.BlobObject, manifest.MaxSize)
	if filtered && errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, errTooLong) {
		return make([]byte, manifest.MaxSize+1), nil
	}
	return content, err
}

func (r *Repository) explain(ctx context.Context, x *exchange, err error) error {
	result := &Error{Kind: ErrFailed, Reason: err.Error()}
	switch own, isOwn := errors.AsType[*Error](err); {
	case x.failure != nil && !errors.Is(x.failure, ErrUnreachable):
		result = x.failure
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		result = &Error{Kind: ErrUnreachable, Reason: "it took too long", cause: ctx.Err()}
	case ctx.Err() != nil:
		result = &Error{Kind: ErrFailed, Reason: "given up", cause: ctx.Err()}
	case x.failure != nil:
		result = x.failure
	case isOwn:
		result = own
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		result.Reason = "the repository is empty"
	default:
		if withURL, ok := errors.AsType[*url.Error](err); ok {
			result.Reason = withURL.Err.Error()
		}
	}
	result.Reason = r.clean(result.Reason)
	return result
}

// clean makes the text safe to show: without the token, on one line and not too long. The
// server may have sent any of it.
func (r *Repository) clean(text string) string {
	if token := r.cfg.Token; token != "" {
		basic := base64.StdEncoding.EncodeToString([]byte(r.cfg.User + ":" + token))
		text = strings.NewReplacer(token, "***", url.QueryEscape(token), "***", url.PathEscape(token), "***", basic, "***").Replace(text)
	}
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }), " ")
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
