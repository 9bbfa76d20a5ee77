package db

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/rivermigrate"
	"golang.org/x/tools/txtar"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schema gives the schema files for one database: those for both, in its words,
// and those for it alone.
func (d dialect) schema() (fs.FS, error) {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	var all txtar.Archive
	for _, e := range entries {
		name := e.Name()
		if strings.Count(name, ".") > 1 && !strings.HasSuffix(name, d.suffix) {
			continue
		}
		text, err := migrations.ReadFile("migrations/" + name)
		if err != nil {
			return nil, err
		}
		all.Files = append(all.Files, txtar.File{Name: name, Data: []byte(d.words.Replace(string(text)))})
	}
	return txtar.FS(&all)
}

// provider runs the schema files.
func (d *DB) provider() (*goose.Provider, error) {
	files, err := d.schema()
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(d.goose, d.DB, files, goose.WithDisableGlobalRegistry(true))
}

// Downgrade takes the record's tables back to an older version of the schema, so
// that tests can see them brought up to date again by Upgrade.
func (d *DB) Downgrade(ctx context.Context, version int64) error {
	p, err := d.provider()
	if err != nil {
		return err
	}
	_, err = p.DownTo(ctx, version)
	return err
}

// Upgrade brings the tables of the record and of the queue up to date, as Open does.
func (d *DB) Upgrade(ctx context.Context) error {
	p, err := d.provider()
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	sources := p.ListSources()
	if known := sources[len(sources)-1].Version; have > known {
		return fmt.Errorf("%w: its schema is %d, this program knows %d: upgrade Patchbench or choose another store",
			ErrNewer, have, known)
	}
	if _, err := p.Up(ctx); err != nil {
		return err
	}
	m, err := rivermigrate.New(d.Queue(), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
