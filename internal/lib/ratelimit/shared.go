package ratelimit

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Scripts runs a script of Lua on a key of Redis's. An error means that Redis is away.
type Scripts interface {
	Run(script, key string, args ...string) (string, error)
}

// SharedConfig holds what a [Shared] is made from. All but Clock is required.
type SharedConfig struct {
	Limit Limit
	Redis Scripts

	// Local counts what this process lets through. Nobody may use it for anything else
	// than what Name says.
	Local *Memory

	// Name tells what is limited from what else is limited on this Redis.
	Name string

	// Among is the limit of which Name is counted for most keys, where some have one of
	// their own. Default: Limit.
	Among Limit

	// Clock is Redis's. Default: its own. For tests.
	Clock func() time.Duration
}

// Shared is a [Limiter] that processes share by Redis. The window is exact to the
// microsecond of Redis's own clock, whatever the clocks of the processes say.
//
// What this process has let through is counted in memory too. What that refuses is
// refused without asking Redis, since all processes have let through at least as much.
// While Redis is away the process goes on with its own count.
type Shared struct {
	SharedConfig
	requests, window, expiry string
}

// NewShared makes a Shared.
func NewShared(cfg SharedConfig) *Shared {
	window := cfg.Limit.Window.Microseconds()
	expiry := (window+999)/1000 + 1 // PX counts milliseconds, and a key is to outlive its window
	if cfg.Clock != nil {
		expiry = time.Hour.Milliseconds() // keys expire by Redis's clock
	}
	among := cmp.Or(cfg.Among, cfg.Limit)
	cfg.Name = fmt.Sprintf("lychgate:%s:%d:%d:", cfg.Name, among.Requests, among.Window.Microseconds())
	return &Shared{cfg, strconv.Itoa(cfg.Limit.Requests), strconv.FormatInt(window, 10), strconv.FormatInt(expiry, 10)}
}

//go:embed take.lua
var script string

// Take asks Redis only for what this process's own count lets through.
func (s *Shared) Take(ctx context.Context, key Key) time.Duration {
	if wait := s.Local.Wait(ctx, key); wait > 0 {
		return wait
	}
	wait, err := s.ask(key, "1")
	if err == nil && wait > 0 {
		return wait
	}
	if local := s.Local.Take(ctx, key); err != nil {
		return local
	}
	return 0
}

// Wait asks as Take does. While Redis is away it knows of this process's requests alone.
func (s *Shared) Wait(ctx context.Context, key Key) time.Duration {
	if wait := s.Local.Wait(ctx, key); wait > 0 {
		return wait
	}
	wait, err := s.ask(key, "0")
	if err != nil {
		return 0
	}
	return wait
}

// ask asks Redis, and returns how long to wait. What it refuses is counted here too, so
// that Redis need not be asked again until then.
func (s *Shared) ask(key Key, take string) (time.Duration, error) {
	args := []string{s.requests, s.window, s.expiry, take}
	if s.Clock != nil {
		args = append(args, strconv.FormatInt(s.Clock().Microseconds(), 10))
	}
	refused, err := s.Redis.Run(script, s.Name+string(key[:]), args...)
	if err != nil || len(refused) != 8*(s.Limit.Requests+1) { // let through, or not what we have written
		return 0, err
	}
	now := timeAt(refused, 0)
	ages := make([]time.Duration, len(refused)/8-1)
	for i := range ages {
		ages[i] = now - timeAt(refused, i+1)
	}
	s.Local.fill(key, ages)
	return s.Limit.Window - ages[0], nil
}

func timeAt(text string, i int) time.Duration {
	bits := binary.LittleEndian.Uint64([]byte(text[8*i : 8*i+8]))
	return time.Duration(math.Float64frombits(bits)) * time.Microsecond
}
