// Package redis is an edge's connection to the Redis that the edges of a fleet
// share. Redis makes their rate limits exact and spares them lookups, and none of
// them needs it: a caller waits for 50 milliseconds at most, and while Redis is away
// nobody waits.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
)

const (
	// defaultTimeout is what readers do not notice.
	defaultTimeout = 50 * time.Millisecond

	// checkInterval is how often Redis is asked when nobody else does.
	checkInterval = 5 * time.Second

	// maxCalls bounds the calls under way. The connection has room for twice as many, and
	// one that finds it full would wait for longer than the timeout.
	maxCalls = 512

	// dialTimeout bounds how long connecting takes, and silence how long a connection
	// is kept that does not answer, also to a PING after pingInterval without use.
	dialTimeout  = 2 * time.Second
	silence      = 2 * time.Second
	pingInterval = time.Second

	// maxRedirections bounds how often a call is sent on from node to node of a Cluster. In one that is
	// being changed there is one, and a second one for a slot that moves.
	maxRedirections = 3
)

// ErrAway means that Redis was not asked, because it did not answer before, or that it
// did not answer now.
var ErrAway = errors.New("redis is away")

// Config holds what a [Client] is made from. URL is required.
type Config struct {
	// URL is where Redis answers: redis://user:password@host:6379/0, rediss:// for
	// TLS, unix:///path. With addr=host:port, once or more, it has further nodes of a
	// Cluster; or, with master_set, further Sentinels.
	URL string

	// Timeout is how long anybody waits for a response. Default: 50 milliseconds.
	Timeout time.Duration

	// Logger gets a line when Redis goes away, and one when it is back, five of each
	// a minute at most. Default: no log.
	Logger *zap.Logger
}

// Client is a connection to Redis. It may be used by many goroutines at once. Close
// it when it is no longer needed.
type Client struct {
	option  rueidis.ClientOption
	timeout time.Duration
	calls   chan struct{} // holds one for each call under way
	logger  *zap.Logger
	scripts sync.Map // text → *rueidis.Lua

	start sync.Once
	live  atomic.Pointer[rueidis.Client] // nil while Redis is away

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex // guards closed, and additions to running
	closed  bool
	running sync.WaitGroup

	interval time.Duration // of the next try; the goroutine that tries has it
	since    time.Time     // when Redis was last seen to answer, likewise
}

// New makes a Client. It does not connect yet.
func New(cfg Config) (*Client, error) { return newClient(context.Background(), cfg) }

func newClient(ctx context.Context, cfg Config) (*Client, error) {
	option, err := parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	option.ClientName = "lychgate"
	option.Dialer.Timeout = dialTimeout
	option.Dialer.KeepAlive = pingInterval // without it, the library pings no Sentinels
	option.Sentinel.ClientName, option.Sentinel.Dialer = option.ClientName, option.Dialer
	option.ConnWriteTimeout = silence
	option.DisableCache = true
	option.DisableRetry = true // the caller does without Redis
	option.AlwaysPipelining = true
	option.PipelineMultiplex = -1 // one connection, so that what is asked at once is sent at once
	option.ClusterOption.MaxMovedRedirections = maxRedirections
	guard(&option)
	c := &Client{option: option, timeout: cmp.Or(cfg.Timeout, defaultTimeout), calls: make(chan struct{}, maxCalls)}
	c.logger = cmp.Or(cfg.Logger, zap.NewNop()).WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 5, 0)
	}))
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c, nil
}

// Start has the client connect in the background, once. Redis is away until then.
func (c *Client) Start() {
	c.start.Do(func() {
		c.running.Go(func() { c.connect() })
		c.running.Go(c.check)
	})
}

// check asks from time to time, so that an edge without readers knows too.
func (c *Client) check() {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-ticker.C:
			_, _ = c.Run(probe, probeKey) // which notes what is wrong
		}
	}
}

// Try connects to Redis and writes to it, once, and returns why that does not work.
// It takes some seconds at most.
func Try(ctx context.Context, cfg Config) error {
	c, err := newClient(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.tryOnce(ctx)
}

// Close ends all calls and the connection.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.running.Wait()
	if live := c.live.Swap(nil); live != nil {
		(*live).Close()
	}
}

// Up reports whether Redis is asked.
func (c *Client) Up() bool { return c.live.Load() != nil }

// Run runs a script of Lua on a key, and returns the text that it returns. Errors:
// ErrAway, after Config.Timeout at most, and also for a response that is an error: what is
// sent here is never refused for what it says.
func (c *Client) Run(script, key string, args ...string) (string, error) {
	live := c.live.Load()
	if live == nil {
		return "", ErrAway
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
	defer cancel()
	select {
	case c.calls <- struct{}{}:
		defer func() { <-c.calls }()
	case <-ctx.Done():
		c.lost(live, fmt.Errorf("%d calls are under way: %w", maxCalls, ctx.Err()))
		return "", ErrAway
	}
	if c.live.Load() != live { // it was lost meanwhile
		return "", ErrAway
	}
	text, err := c.run(ctx, *live, script, key, args)
	if err != nil {
		c.lost(live, err)
		return "", ErrAway
	}
	return text, nil
}

func (c *Client) run(ctx context.Context, client rueidis.Client, script, key string, args []string) (string, error) {
	lua, ok := c.scripts.Load(script)
	if !ok {
		lua, _ = c.scripts.LoadOrStore(script, rueidis.NewLuaScript(script))
	}
	return lua.(*rueidis.Lua).Exec(ctx, client, []string{key}, args).ToString()
}

// lost notes that Redis is away, once, and has it tried again.
func (c *Client) lost(live *rueidis.Client, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !c.live.CompareAndSwap(live, nil) {
		return
	}
	c.logger.Error(away, reason(err))
	c.running.Go((*live).Close) // what it leads to may no longer be the Redis that takes writes
	c.running.Go(func() {
		if time.Since(c.since) >= steadyTime {
			c.interval = 0
		}
		c.connect()
	})
}

// maxReason bounds what a line of the log has of Redis's error, in code points.
const maxReason = 200

func reason(err error) zap.Field { return zap.String("error", clip.Text(err.Error(), maxReason)) }

const away = "Redis does not answer, so this edge goes on by itself"

// connect tries to reach Redis until it answers: at once if it never did.
func (c *Client) connect() {
	logged := !c.since.IsZero()
	if logged {
		c.interval = max(c.interval, firstInterval)
	}
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(c.interval):
		}
		c.interval = min(max(2*c.interval, firstInterval), lastInterval)
		err := c.tryOnce(c.ctx)
		if err == nil {
			return
		}
		if !logged && c.ctx.Err() == nil {
			c.logger.Error(away, reason(err))
			logged = true
		}
	}
}

// probe writes, which a replica and a Redis without memory refuse.
const (
	probe    = `redis.call('SET', KEYS[1], '1', 'PX', 1000) return ''`
	probeKey = "lychgate:probe"
)

// tryOnce connects anew, and has Redis asked from now on if it then answers in time.
func (c *Client) tryOnce(ctx context.Context) error {
	client, err := rueidis.NewClient(c.option)
	if err != nil {
		return err
	}
	for range 2 { // the first may have to load the script
		answering, cancel := context.WithTimeout(ctx, c.timeout)
		_, err = c.run(answering, client, probe, probeKey, nil)
		cancel()
	}
	if err != nil {
		client.Close()
		return err
	}
	c.since = time.Now()
	c.live.Store(&client)
	c.logger.Info("Redis answers again")
	return nil
}
