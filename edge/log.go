package edge

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Sampled returns a logger that writes at most ten lines of each message a minute,
// so that what strangers send fills no log.
func Sampled(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 10, 0)
	}))
}
