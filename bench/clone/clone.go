// Package clone copies folders whose files may be a stranger's: builds, caches and
// data of benchmarks.
//
// In go two folders, out comes the second as the first is. What the files mean is
// not known here.
package clone

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Tree copies what is below one folder into another, empty one, as cp -a does:
// links as links, hard links among the files kept, modes without setuid bits,
// times. What is neither file, folder nor link is left out. Contents share their
// blocks where the file system can do that.
//
// The files may be a stranger's: nothing outside of both folders is touched,
// whatever links there are.
func Tree(from, to string) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()

	type folder struct {
		rel  string
		mode fs.FileMode
		time time.Time
	}
	var folders []folder
	linked := map[uint64]string{} // by inode: the first copy
	err = fs.WalkDir(src.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			folders = append(folders, folder{rel, mode.Perm(), info.ModTime()})
			if rel == "." {
				return nil
			}
			return dst.Mkdir(rel, 0o700)
		case mode&fs.ModeSymlink != 0:
			target, err := src.Readlink(rel)
			if err != nil {
				return err
			}
			return dst.Symlink(target, rel)
		case !mode.IsRegular():
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
			if first, ok := linked[st.Ino]; ok {
				return dst.Link(first, rel)
			}
			linked[st.Ino] = rel
		}
		return copyFile(src, dst, rel, info)
	})
	if err != nil {
		return err
	}
	// A folder's time changes while it is filled, and its mode may forbid that.
	for i := len(folders) - 1; i >= 0; i-- {
		f := folders[i]
		if err := dst.Chtimes(f.rel, f.time, f.time); err != nil {
			return err
		}
		if err := dst.Chmod(f.rel, f.mode); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(src, dst *os.Root, rel string, info fs.FileInfo) (err error) {
	in, err := src.OpenFile(rel, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := dst.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) != nil {
		if err := copyExtents(out, in); err != nil {
			return fmt.Errorf("copy %s: %w", rel, err)
		}
	}
	if err := out.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	return dst.Chtimes(rel, info.ModTime(), info.ModTime())
}

// copyExtents copies a file and leaves its holes as holes, so that a file of
// little more than a size cannot fill the disk.
func copyExtents(out, in *os.File) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if err := out.Truncate(size); err != nil {
		return err
	}
	for off := int64(0); off < size; {
		start, err := in.Seek(off, unix.SEEK_DATA)
		if errors.Is(err, syscall.ENXIO) {
			return nil // nothing but a hole is left
		}
		end := size
		if err == nil {
			if end, err = in.Seek(start, unix.SEEK_HOLE); err != nil {
				return err
			}
		} else {
			start = off // a file system without holes
		}
		if _, err := in.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(start, io.SeekStart); err != nil {
			return err
		}
		// Between two files the kernel copies (copy_file_range).
		if _, err := io.CopyN(out, in, end-start); err != nil {
			return err
		}
		off = end
	}
	return nil
}
