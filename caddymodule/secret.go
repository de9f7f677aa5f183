package caddymodule

import (
	"github.com/lychgate/caddy-lychgate/internal/seal"
)

// Keyring returns what seals and opens the secrets of sites in the store. Without
// Secrets it can do neither.
func (a *App) Keyring() (*seal.Keyring, error) {
	var secrets []string
	for _, secret := range a.Secrets {
		secret, err := replace("secret", secret)
		if err == nil {
			err = checkSecret(secret)
		}
		if err != nil {
			return nil, inBlock("lychgate", "", inSecrets(err))
		}
		secrets = append(secrets, secret)
	}
	if err := checkSecrets(secrets); err != nil {
		return nil, inBlock("lychgate", "", err)
	}
	return seal.NewKeyring(secrets...)
}

// checkSecret checks a secret. It is in no error.
func checkSecret(secret string) error {
	if _, err := seal.NewKeyring(secret); err != nil {
		if err := checkVariable("secret", secret); err != nil {
			return inSecrets(err)
		}
		return &mistake{name: "secret", text: err.Error(), field: "secrets"}
	}
	return nil
}

// inSecrets says that a mistake is in the field that JSON has for the option.
func inSecrets(err error) error {
	if m, ok := err.(*mistake); ok { //nolint:errorlint // as it was made here
		m.field = "secrets"
	}
	return err
}
