package themes

import (
	"context"
	"errors"

	"github.com/lychgate/caddy-lychgate/internal/themes/git"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// FromRepository is the source of a theme that is kept in a git repository. Its
// errors other than ErrNoManifest, *MisnamedError and *TooLargeError are those of package git.
func FromRepository(repository *git.Repository, fileName string) Source {
	return func(ctx context.Context) ([]byte, error) {
		text, err := repository.ReadFile(ctx, fileName)
		switch failure, _ := errors.AsType[*git.Error](err); {
		case errors.Is(err, git.ErrNoFile) && failure.Misnamed != "":
			return nil, &MisnamedError{failure.Misnamed, fileName}
		case errors.Is(err, git.ErrNoFile):
			return nil, ErrNoManifest
		case err != nil:
			return nil, err
		case len(text) > manifest.MaxSize:
			return nil, &TooLargeError{Path: fileName}
		}
		return text, nil
	}
}

// FromFile is the source of a theme, or of a manifest alone, on this computer, as [Open] reads it.
func FromFile(name, fileName string) Source {
	return func(context.Context) ([]byte, error) {
		file, err := Open(name, fileName)
		return file.Text, err
	}
}

// FromZip is the source of a theme whose zip went by.
func FromZip(scanner *ZipScanner) Source {
	return func(context.Context) ([]byte, error) {
		file, err := scanner.Manifest()
		return file.Text, err
	}
}
