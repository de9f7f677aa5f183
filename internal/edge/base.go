package edge

import (
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/pool"
	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// base is what all parts of an edge need.
type base struct {
	Options
	Shared

	// Audit logs who changed what.
	Audit audit.Log

	// AdminTokens are those of the admin API.
	AdminTokens config.AdminTokens

	mail     *mail.Server     // of sites that have none of their own, nil for none
	fallback *manifest.Events // the types of themes that declare none, nil for none
	keyring  *seal.Keyring
	store    *openStore // nil unless something needs it
	releases pool.Releases
}

// prepareStore checks what the configuration says of the store.
func (b *base) prepareStore() (err error) {
	if b.keyring, err = b.Config.Keyring(b.Placeholders); err != nil || b.Config.Store == nil {
		return err
	}
	_, _, err = b.resolveStore()
	return err
}

// prepareTokens is prepareStore for the tokens of the admin API.
func (b *base) prepareTokens() (err error) {
	b.AdminTokens, err = b.Config.ResolveAdminTokens(b.Placeholders)
	return err
}

// prepareMail is prepareStore for how mails are sent.
func (b *base) prepareMail() (err error) {
	b.mail, err = mailServer(b.Config.Mail, b.Placeholders)
	return err
}

// prepareShared is prepareStore for what [Shared] needs.
func (b *base) prepareShared() (err error) {
	b.Shared, err = newShared(b.Options, &b.releases)
	return err
}

func (b *base) resolveStore() (database.Kind, string, error) {
	kind, source, err := b.Config.Store.Resolve(b.Placeholders, b.StoreFile)
	return kind, source, config.In("lychgate", "", err)
}

// useStore checks what the configuration says of the store, and has it opened
// for one more user when the edge starts.
func (b *base) useStore(user storeUser) (*openStore, error) {
	if b.store == nil {
		kind, source, err := b.resolveStore()
		if err != nil {
			return nil, err
		}
		b.store = &openStore{kind: kind, source: source, logger: b.Logger, audit: b.Audit}
	}
	b.store.users = append(b.store.users, user)
	return b.store, nil
}

// StoreKind is "none" for a configuration that uses no store.
func (b *base) StoreKind() database.Kind {
	if b.store == nil {
		return "none"
	}
	return b.store.kind
}

// StoreAt is where the store is, without a password; "" for none.
func (b *base) StoreAt() string {
	if b.store == nil {
		return ""
	}
	return database.Place(b.store.kind, b.store.source)
}

func (b *base) connect(site *Site) (platform.Platform, error) {
	if site.Platform != nil {
		return site.Platform, nil
	}
	connected, err := site.Config.Platform.Connect(b.Placeholders)
	if err == nil {
		site.Platform = connected
	}
	return connected, err
}
