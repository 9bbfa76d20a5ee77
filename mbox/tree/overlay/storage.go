package overlay

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	gitstorage "github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
	"github.com/go-git/go-git/v5/storage/memory"
)

// errReadOnly is what every attempt to write to the user's repository gives.
var errReadOnly = errors.New("the repository is only read")

// storage is a repository as go-git wants it: references from the repository,
// objects from a Repo, and all else from memory, so that nothing that go-git
// does can reach the user's files.
type storage struct {
	storer.ReferenceStorer
	storer.ShallowStorer
	storer.IndexStorer
	config.ConfigStorer
	gitstorage.ModuleStorer
	objects *Repo

	disk *filesystem.Storage
}

func newStorage(dir *dotgit.DotGit) (*storage, error) {
	disk := filesystem.NewStorageWithOptions(dir.Fs(), cache.NewObjectLRU(1<<20), filesystem.Options{KeepDescriptors: true})
	cfg, err := disk.Config()
	if err != nil {
		return nil, fmt.Errorf("read its config: %w", err)
	}
	ext := cfg.Raw.Section("extensions")
	switch {
	case ext.Option("objectFormat") != "" && !strings.EqualFold(ext.Option("objectFormat"), "sha1"):
		return nil, fmt.Errorf("its object ids are %s and only sha1 can be read; use a clone made with git init --object-format=sha1", ext.Option("objectFormat"))
	case ext.Option("partialClone") != "":
		return nil, errors.New("it is a partial clone, which lacks objects; run git fetch --refetch --no-filter, or use a full clone")
	case ext.Option("refStorage") != "" && !strings.EqualFold(ext.Option("refStorage"), "files"):
		return nil, fmt.Errorf("its references are kept as %s; run git refs migrate --ref-format=files", ext.Option("refStorage"))
	}
	m := memory.NewStorage()
	return &storage{ReferenceStorer: readRefs{disk}, ShallowStorer: m, IndexStorer: m, ConfigStorer: m, ModuleStorer: m, disk: disk}, nil
}

func (s *storage) close() error { return s.disk.Close() }

// readRefs lets references be read only.
type readRefs struct{ storer.ReferenceStorer }

func (readRefs) SetReference(*plumbing.Reference) error              { return errReadOnly }
func (readRefs) CheckAndSetReference(_, _ *plumbing.Reference) error { return errReadOnly }
func (readRefs) RemoveReference(plumbing.ReferenceName) error        { return errReadOnly }
func (readRefs) PackRefs() error                                     { return errReadOnly }

func (s *storage) RawObjectWriter(plumbing.ObjectType, int64) (io.WriteCloser, error) {
	return nil, errReadOnly
}

func (s *storage) NewEncodedObject() plumbing.EncodedObject { return &plumbing.MemoryObject{} }

func (s *storage) SetEncodedObject(plumbing.EncodedObject) (plumbing.Hash, error) {
	return plumbing.ZeroHash, errReadOnly
}

func (s *storage) EncodedObject(t plumbing.ObjectType, id plumbing.Hash) (plumbing.EncodedObject, error) {
	typ, data, err := s.objects.Read(id)
	if err != nil {
		return nil, err
	}
	if t != plumbing.AnyObject && t != typ {
		return nil, plumbing.ErrObjectNotFound
	}
	o := &plumbing.MemoryObject{}
	o.SetType(typ)
	_, err = o.Write(data)
	return o, err
}

func (s *storage) HasEncodedObject(id plumbing.Hash) error {
	if !s.objects.Has(id) {
		return plumbing.ErrObjectNotFound
	}
	return nil
}

func (s *storage) EncodedObjectSize(id plumbing.Hash) (int64, error) {
	_, data, err := s.objects.Read(id)
	return int64(len(data)), err
}

// HashesWithPrefix is what go-git asks for when a revision is an abbreviated id.
func (s *storage) HashesWithPrefix(prefix []byte) ([]plumbing.Hash, error) {
	return s.objects.odb.Prefix(fmt.Sprintf("%x", prefix)), nil
}

func (s *storage) IterEncodedObjects(plumbing.ObjectType) (storer.EncodedObjectIter, error) {
	return nil, errors.New("objects are not listed")
}

func (s *storage) AddAlternate(string) error { return errReadOnly }
