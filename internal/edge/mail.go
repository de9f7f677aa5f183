package edge

import (
	"runtime"
	"sync"
	"weak"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/mail"
)

// mailServers are those in use. Two sites, or the configurations of before and after a reload, that send in the same way
// have the same value, whose attempts can be told from those of another by it.
var mailServers struct {
	sync.Mutex
	byConfig map[mail.Config]weak.Pointer[mail.Server]
}

// mailServer is nil for no mails.
func mailServer(of *config.Mail, p config.Placeholders) (*mail.Server, error) {
	cfg, err := of.Resolve(p)
	if err != nil || cfg == (mail.Config{}) {
		return nil, err
	}
	mailServers.Lock()
	defer mailServers.Unlock()
	if known := mailServers.byConfig[cfg].Value(); known != nil {
		return known, nil
	}
	server, err := mail.New(cfg)
	if err != nil {
		return nil, err
	}
	if mailServers.byConfig == nil {
		mailServers.byConfig = make(map[mail.Config]weak.Pointer[mail.Server])
	}
	mailServers.byConfig[cfg] = weak.Make(server)
	runtime.AddCleanup(server, forgetMailServer, cfg)
	return server, nil
}

func forgetMailServer(cfg mail.Config) {
	mailServers.Lock()
	defer mailServers.Unlock()
	if mailServers.byConfig[cfg].Value() == nil {
		delete(mailServers.byConfig, cfg)
	}
}
