package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"patchbench/bench/clone"
)

// former is a build that the next version's may start from.
type former struct {
	dir     string
	tracked map[string]bool // files of its checkout, below src
}

// start makes of a fresh checkout in dir/src one that continues the former build:
// a copy of all that build has left, in which the files that the version has
// differently are replaced. Those keep the time of their checkout, which is later
// than the former build; all others keep theirs. It gives the stamps of the files
// of the version, from which those that a build made are told.
func (b *Builder) start(ctx context.Context, dir string) (map[string]stamp, error) {
	src, out, fresh := filepath.Join(dir, "src"), filepath.Join(dir, "out"), filepath.Join(dir, "fresh")
	from, ok := b.former()
	if !ok {
		return snapshot(ctx, src)
	}
	if err := os.RemoveAll(fresh); err != nil {
		return nil, err
	}
	if err := os.Rename(src, fresh); err != nil {
		return nil, err
	}
	if err := os.Mkdir(src, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{"src", "out"} {
		if err := clone.Tree(filepath.Join(from.dir, name), filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("continue the build in %s: %w", from.dir, err)
		}
	}
	for _, d := range []string{src, out} {
		if err := b.own(d); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	checkout, err := snapshot(ctx, fresh)
	if err != nil {
		return nil, err
	}
	for rel := range from.tracked {
		if _, ok := checkout[rel]; ok || !below(root, "src", rel) {
			continue
		}
		if err := root.RemoveAll(path.Join("src", rel)); err != nil {
			return nil, err
		}
		// As git does: folders that are empty now go too.
		for up := path.Dir(rel); up != "." && root.Remove(path.Join("src", up)) == nil; {
			up = path.Dir(up)
		}
	}
	if err := renew(ctx, root); err != nil {
		return nil, err
	}
	if err := root.RemoveAll("fresh"); err != nil {
		return nil, err
	}
	if err := b.own(src); err != nil {
		return nil, err
	}
	all, err := snapshot(ctx, src)
	for rel := range all {
		if _, ok := checkout[rel]; !ok {
			delete(all, rel) // made by a build
		}
	}
	return all, err
}

// below says that a path leads through folders alone, where a build may have put
// links.
func below(root *os.Root, dir, rel string) bool {
	for _, name := range folders(rel) {
		dir = path.Join(dir, name)
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// renew moves what differs from fresh to src.
func renew(ctx context.Context, root *os.Root) error {
	return fs.WalkDir(root.FS(), "fresh", func(from string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || from == "fresh" {
			return err
		}
		rel := from[len("fresh/"):]
		to := path.Join("src", rel)
		there, err := root.Lstat(to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		missing := err != nil
		if d.IsDir() {
			if !missing && there.IsDir() {
				return nil
			}
			if err := root.RemoveAll(to); err != nil {
				return err
			}
			return root.Mkdir(to, 0o755)
		}
		if !missing {
			equal, err := same(root, from, to)
			if err != nil || equal {
				return err
			}
			if err := root.RemoveAll(to); err != nil {
				return err
			}
		}
		return root.Rename(from, to)
	})
}

// same says that two files or links are what git takes for the same.
func same(root *os.Root, a, b string) (bool, error) {
	x, err := root.Lstat(a)
	if err != nil {
		return false, err
	}
	y, err := root.Lstat(b)
	if err != nil {
		return false, err
	}
	if x.Mode().Type() != y.Mode().Type() || (x.Mode()^y.Mode())&0o100 != 0 {
		return false, nil
	}
	if x.Mode()&fs.ModeSymlink != 0 {
		s, err := root.Readlink(a)
		if err != nil {
			return false, err
		}
		t, err := root.Readlink(b)
		return s == t, err
	}
	if !x.Mode().IsRegular() || x.Size() != y.Size() {
		return false, nil
	}
	f, err := root.OpenFile(a, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	g, err := root.OpenFile(b, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return false, nil // the build made it unreadable
	}
	if err != nil {
		return false, err
	}
	defer g.Close()
	p, q := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err1 := io.ReadFull(f, p)
		m, err2 := io.ReadFull(g, q)
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		switch {
		case err1 == nil && err2 == nil:
		case end(err1) && end(err2):
			return true, nil
		default:
			return false, errors.Join(err1, err2)
		}
	}
}

// end says that a file has been read to its end.
func end(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

// former is the last build that is still there.
func (b *Builder) former() (former, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.formers) - 1; i >= 0; i-- {
		if info, err := os.Lstat(filepath.Join(b.formers[i].dir, "src")); err == nil && info.IsDir() {
			return b.formers[i], true
		}
	}
	return former{}, false
}
