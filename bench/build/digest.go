package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"patchbench/bench"
)

// What a build may leave behind; more is a fault of the recipe.
const (
	maxFiles     = 1_000_000
	maxPath      = 4000     // bytes
	maxBytes     = 64 << 30 // by the sizes of the files
	maxScript    = 1 << 20  // of a script that is read for the names in it
	maxUnmatched = 5        // patterns named in a message
)

// fault is what is wrong with a build that ran to its end; it is the recipe's.
type fault string

func (f fault) Error() string { return string(f) }

// stamp tells whether a file was written between two looks.
type stamp struct {
	size, inode int64
	time        time.Time
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), time: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = int64(st.Ino)
	}
	return s
}

// walk calls f for everything below a folder but folders, in order of the names
// in each folder. Links are not followed.
func walk(ctx context.Context, root *os.Root, f func(rel string, info fs.FileInfo) error) error {
	n := 0
	return fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrPermission):
			return fault("the build left a folder that cannot be read: " + rel)
		case err != nil:
			return err
		case len(rel) > maxPath:
			return fault(fmt.Sprintf("the build left a path of more than %d bytes: %s...", maxPath, rel[:80]))
		case d.IsDir():
			return nil
		}
		if n++; n > maxFiles {
			return fault(fmt.Sprintf("the build left more than %d files", maxFiles))
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return f(rel, info)
	})
}

// snapshot notes the files of a folder before a build.
func snapshot(ctx context.Context, dir string) (map[string]stamp, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	stamps := map[string]stamp{}
	err = walk(ctx, root, func(rel string, info fs.FileInfo) error {
		stamps[rel] = stampOf(info)
		return nil
	})
	return stamps, err
}

// listed is a file found after a build.
type listed struct {
	file
	root *os.Root
	info fs.FileInfo
}

// digest works out what identifies the build in dir. before holds the files of
// src as they were checked out. The error is a fault if the recipe is to blame.
func digest(ctx context.Context, dir string, before map[string]stamp, suite *bench.Suite) (string, error) {
	src, err := os.OpenRoot(filepath.Join(dir, "src"))
	if err != nil {
		return "", err
	}
	defer src.Close()
	out, err := os.OpenRoot(filepath.Join(dir, "out"))
	if err != nil {
		return "", err
	}
	defer out.Close()

	c := chooser{keep: suite.Build.Keep}
	if len(c.keep) == 0 {
		c.named = mentioned(suite.Benchmarks, func(rel string) string { return script(src, rel) })
	}
	var files []listed
	for _, root := range []*os.Root{src, out} {
		err := walk(ctx, root, func(rel string, info fs.FileInfo) error {
			l := listed{file: file{rel: rel, out: root == out}, root: root, info: info}
			was, there := before[rel]
			l.made = l.out || !there || was != stampOf(info)
			if l.made && !c.binary && len(c.keep) == 0 {
				c.binary = isBinary(l)
			}
			files = append(files, l)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	var chosen []listed
	total := int64(0)
	for _, l := range files {
		if c.counts(l.file) {
			chosen = append(chosen, l)
			total += l.info.Size()
		}
	}
	if total > maxBytes {
		return "", fault(fmt.Sprintf("the build left %d GiB of files: name those that matter with keep = [...]", total>>30))
	}
	if err := unmatched(c.keep, chosen); err != nil {
		return "", err
	}
	slices.SortFunc(chosen, func(a, b listed) int {
		if a.out != b.out {
			if b.out {
				return -1
			}
			return 1
		}
		return strings.Compare(a.rel, b.rel)
	})

	// In a box no program sees the folder; without one its name gets into files.
	var blanks [][]byte
	if abs, err := filepath.Abs(dir); err == nil && len(abs) >= 4 {
		blanks = [][]byte{[]byte(abs)}
	}
	h := sha256.New()
	for _, l := range chosen {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if err := l.sum(h, blanks); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// unmatched complains of patterns that match none of the chosen files.
func unmatched(keep []string, chosen []listed) error {
	var none []string
	for _, p := range keep {
		if !slices.ContainsFunc(chosen, func(l listed) bool { return !l.out && matchBelow(p, l.rel) }) {
			none = append(none, fmt.Sprintf("%q", p))
		}
	}
	if len(none) == 0 {
		return nil
	}
	if more := len(none) - maxUnmatched; more > 0 {
		none = append(none[:maxUnmatched], fmt.Sprintf("and %d more", more))
	}
	return fault("the build made no file that keep names: " + strings.Join(none, ", "))
}

// sum writes one file of the digest.
func (l listed) sum(w io.Writer, blanks [][]byte) error {
	where := "src"
	if l.out {
		where = "out"
	}
	switch mode := l.info.Mode(); {
	case mode.IsRegular():
		f, err := l.open()
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		sum, err := contentSum(f, info.Size(), blanks)
		if err != nil {
			return fmt.Errorf("read %s: %w", l.rel, err)
		}
		fmt.Fprintf(w, "%s %q exec %v %x\n", where, l.rel, mode&0o111 != 0, sum)
	case mode&fs.ModeSymlink != 0:
		target, err := l.root.Readlink(l.rel)
		if err != nil {
			return fmt.Errorf("read link %s: %w", l.rel, err)
		}
		for _, b := range blanks {
			target = strings.ReplaceAll(target, string(b), blanked)
		}
		fmt.Fprintf(w, "%s %q link %q\n", where, l.rel, target)
	default:
		fmt.Fprintf(w, "%s %q %v\n", where, l.rel, mode.Type())
	}
	return nil
}

// open opens a regular file for reading, also one that the build made
// unreadable for its owner.
func (l listed) open() (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := l.root.OpenFile(l.rel, flags, 0)
	if errors.Is(err, fs.ErrPermission) {
		if l.root.Chmod(l.rel, l.info.Mode().Perm()|0o400) == nil {
			f, err = l.root.OpenFile(l.rel, flags, 0)
		}
		if err != nil {
			return nil, fault("the build left a file that cannot be read: " + l.rel)
		}
	}
	return f, err
}

// isBinary says that a file is an ELF executable or shared object.
func isBinary(l listed) bool {
	if !l.info.Mode().IsRegular() || l.info.Size() < 52 {
		return false
	}
	f, err := l.open()
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 18)
	if _, err := io.ReadFull(f, head); err != nil || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return false
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	t := elf.Type(order.Uint16(head[16:]))
	return t == elf.ET_EXEC || t == elf.ET_DYN
}

// script gives the text of a script in src, "" for what is none.
func script(src *os.Root, rel string) string {
	info, err := src.Stat(rel)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxScript {
		return ""
	}
	text, err := src.ReadFile(rel)
	if err != nil || bytes.IndexByte(text, 0) >= 0 {
		return ""
	}
	if !bytes.HasPrefix(text, []byte("#!")) && !interpreted[filepath.Ext(rel)] {
		return ""
	}
	return string(text)
}
