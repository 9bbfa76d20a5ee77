// Package odb reads the objects of a git repository: loose files, packs and the
// alternates that the repository names. In goes an object id, out come its type
// and bytes. It is the lowest part of mbox/tree, beside its diff.
//
// Pack indexes are mapped into memory and searched in place, so that opening a
// repository costs the same whether it holds a hundred objects or a million.
// Nothing here writes, and nothing here knows what a tree or a commit means.
package odb

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrNotFound is returned for an id that no loose file and no pack holds.
var ErrNotFound = plumbing.ErrObjectNotFound

// maxObject bounds the declared size of one object.
const maxObject = 1 << 30

// cacheBytes bounds what the cache of unpacked delta bases holds.
const cacheBytes = 24 << 20

// Store is the objects of one repository. It may be used by several goroutines.
type Store struct {
	dirs  []string // objects folders, the repository's own first
	cache *cache

	mu    sync.RWMutex
	packs []*pack
	times map[string]time.Time // of each pack folder when it was listed
}

// Open reads which packs and alternates an objects folder has. It fails if the
// folder is missing or a pack's index is broken.
func Open(objects string) (*Store, error) {
	s := &Store{cache: newCache(cacheBytes), times: map[string]time.Time{}}
	if err := s.addDir(objects, 0); err != nil {
		return nil, err
	}
	if err := s.scan(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// addDir takes an objects folder and the ones in its info/alternates. Git
// follows alternates five deep; a loop ends because a folder is taken once.
func (s *Store) addDir(dir string, depth int) error {
	dir = filepath.Clean(dir)
	if slices.Contains(s.dirs, dir) {
		return nil
	}
	if fi, err := os.Stat(dir); err != nil {
		return err
	} else if !fi.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	s.dirs = append(s.dirs, dir)
	text, err := os.ReadFile(filepath.Join(dir, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' || depth >= 5 {
			continue
		}
		if line[0] == '"' {
			if q, err := strconv.Unquote(line); err == nil {
				line = q
			}
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		// Git warns of an alternate that is gone and goes on without it; an
		// object that only it held is then reported as missing.
		if err := s.addDir(line, depth+1); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// scan opens the packs that are not open yet.
func (s *Store) scan() error {
	open := map[string]bool{}
	for _, p := range s.packs {
		open[p.name] = true
	}
	for _, dir := range s.dirs {
		dir = filepath.Join(dir, "pack")
		fi, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		s.times[dir] = fi.ModTime()
		names, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range names {
			name, ok := strings.CutSuffix(e.Name(), ".idx")
			if !ok {
				continue
			}
			if name = filepath.Join(dir, name); open[name] {
				continue
			}
			p, err := openPack(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // a repack took it away since the folder was read
			} else if err != nil {
				return err
			}
			s.packs = append(s.packs, p)
		}
	}
	return nil
}

// rescan looks for new packs if a pack folder changed since it was read.
func (s *Store) rescan() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range s.dirs {
		dir = filepath.Join(dir, "pack")
		if fi, err := os.Stat(dir); err == nil && !fi.ModTime().Equal(s.times[dir]) {
			n := len(s.packs)
			return s.scan() == nil && len(s.packs) > n
		}
	}
	return false
}

// Close closes the packs. Bytes that were read stay valid.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.packs {
		errs = append(errs, p.close())
	}
	s.packs = nil
	return errors.Join(errs...)
}

// find gives the pack and offset of an object.
func (s *Store) find(id plumbing.Hash) (*pack, int64, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.packs {
		if off, ok := p.offset(id); ok {
			return p, off, true
		}
	}
	return nil, 0, false
}

// Has says whether the object is there. It reads no object.
func (s *Store) Has(id plumbing.Hash) bool {
	if _, _, ok := s.find(id); ok {
		return true
	}
	for _, dir := range s.dirs {
		if _, err := os.Stat(loosePath(dir, id)); err == nil {
			return true
		}
	}
	if s.rescan() {
		_, _, ok := s.find(id)
		return ok
	}
	return false
}

// Read gives an object's type and bytes, which must not be changed. The error
// is ErrNotFound if the repository does not hold it.
func (s *Store) Read(id plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	for again := true; ; again = false {
		if p, off, ok := s.find(id); ok {
			typ, data, err := s.unpack(p, off)
			if err != nil {
				return 0, nil, fmt.Errorf("object %s: %s at offset %d: %w", id, p.name, off, err)
			}
			return typ, data, nil
		}
		for _, dir := range s.dirs {
			typ, data, err := readLoose(loosePath(dir, id))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return 0, nil, fmt.Errorf("object %s: %w", id, err)
			}
			return typ, data, nil
		}
		if !again || !s.rescan() {
			return 0, nil, ErrNotFound
		}
	}
}

// Size gives an object's length in bytes; reading it is cheaper than reading the
// object. The error is ErrNotFound if the repository does not hold it.
func (s *Store) Size(id plumbing.Hash) (int64, error) {
	if p, off, ok := s.find(id); ok {
		n, err := p.sizeOf(off)
		if err != nil {
			return 0, fmt.Errorf("object %s: %s at offset %d: %w", id, p.name, off, err)
		}
		return n, nil
	}
	_, data, err := s.Read(id)
	return int64(len(data)), err
}

// Prefix lists the objects whose hex id starts with a prefix of at least four
// digits, in no order and each once; at most 256 of them.
func (s *Store) Prefix(prefix string) []plumbing.Hash {
	prefix = strings.ToLower(prefix)
	if len(prefix) < 4 || len(prefix) > 40 {
		return nil
	}
	low, err := hex.DecodeString(prefix + strings.Repeat("0", 40-len(prefix)))
	if err != nil {
		return nil
	}
	var found []plumbing.Hash
	add := func(id plumbing.Hash) bool {
		if !strings.HasPrefix(id.String(), prefix) {
			return false
		}
		if !slices.Contains(found, id) && len(found) < 256 {
			found = append(found, id)
		}
		return len(found) < 256
	}
	s.mu.RLock()
	for _, p := range s.packs {
		for i := p.search(low); i < p.count && add(p.id(i)); i++ {
		}
	}
	s.mu.RUnlock()
	for _, dir := range s.dirs {
		names, err := os.ReadDir(filepath.Join(dir, prefix[:2]))
		if err != nil {
			continue
		}
		for _, e := range names {
			if h := prefix[:2] + e.Name(); len(h) == 40 && strings.HasPrefix(h, prefix) {
				add(plumbing.NewHash(h))
			}
		}
	}
	return found
}

func loosePath(dir string, id plumbing.Hash) string {
	h := id.String()
	return filepath.Join(dir, h[:2], h[2:])
}

func readLoose(path string) (plumbing.ObjectType, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return 0, nil, err
	}
	defer z.Close()
	r := bufio.NewReader(z)
	head, err := r.ReadString(0)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: read header: %w", path, err)
	}
	name, digits, _ := strings.Cut(strings.TrimSuffix(head, "\x00"), " ")
	typ, err := plumbing.ParseObjectType(name)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", path, err)
	}
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || size < 0 || size > maxObject {
		return 0, nil, fmt.Errorf("%s: size %q is not a number of bytes up to %d", path, digits, maxObject)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", path, err)
	}
	if n, _ := r.Read(make([]byte, 1)); n != 0 {
		return 0, nil, fmt.Errorf("%s: longer than the %d bytes that it declares", path, size)
	}
	return typ, data, nil
}

// cache keeps unpacked objects that are bases of deltas, the last used ones
// first to stay, by pack and offset.
type cache struct {
	mu  sync.Mutex
	max int
	// Two generations stand in for a list of uses: what is read from the older
	// one moves to the younger, and the older is dropped when both are full.
	young, old map[cacheKey]entry
	youngBytes int
}

type cacheKey struct {
	p   *pack
	off int64
}

type entry struct {
	typ  plumbing.ObjectType
	data []byte
}

func newCache(max int) *cache {
	return &cache{max: max, young: map[cacheKey]entry{}, old: map[cacheKey]entry{}}
}

func (c *cache) get(k cacheKey) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.young[k]; ok {
		return e, true
	}
	e, ok := c.old[k]
	if ok {
		c.put(k, e)
	}
	return e, ok
}

func (c *cache) add(k cacheKey, e entry) {
	if len(e.data) > c.max/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(k, e)
}

func (c *cache) put(k cacheKey, e entry) {
	if _, ok := c.young[k]; ok {
		return
	}
	if c.youngBytes+len(e.data) > c.max/2 {
		c.old, c.young, c.youngBytes = c.young, map[cacheKey]entry{}, 0
	}
	c.young[k] = e
	c.youngBytes += len(e.data) + 64
}

// inflater is a reader of zlib streams that is used again and again.
type inflater struct {
	z   io.ReadCloser
	buf *bufio.Reader
}

var inflaters = sync.Pool{New: func() any { return &inflater{buf: bufio.NewReaderSize(nil, 4096)} }}

// inflate reads exactly size bytes of the zlib stream that starts in r.
func inflate(r io.Reader, size int64) ([]byte, error) {
	if size < 0 || size > maxObject {
		return nil, fmt.Errorf("object of %d bytes, limit %d", size, maxObject)
	}
	in := inflaters.Get().(*inflater)
	defer inflaters.Put(in)
	in.buf.Reset(r)
	var err error
	if in.z == nil {
		in.z, err = zlib.NewReader(in.buf)
	} else {
		err = in.z.(zlib.Resetter).Reset(in.buf, nil)
	}
	if err != nil {
		in.z = nil
		return nil, err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(in.z, data); err != nil {
		return nil, err
	}
	// The checksum is verified when the end is read.
	if n, err := in.z.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("object is not the %d bytes that it declares", size)
	}
	return data, nil
}

var errDelta = errors.New("delta does not fit its base")

// patch applies a git delta to its base.
func patch(base, delta []byte) ([]byte, error) {
	from, delta, ok := deltaSize(delta)
	if !ok || from != int64(len(base)) {
		return nil, errDelta
	}
	size, delta, ok := deltaSize(delta)
	if !ok || size > maxObject {
		return nil, errDelta
	}
	// A short delta that declares much cannot make us allocate it at once.
	out := bytes.NewBuffer(make([]byte, 0, min(size, int64(len(base)+len(delta)))))
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		switch {
		case op&0x80 != 0:
			var off, n int64
			for i := range 7 {
				if op&(1<<i) == 0 {
					continue
				}
				if len(delta) == 0 {
					return nil, errDelta
				}
				if i < 4 {
					off |= int64(delta[0]) << (8 * i)
				} else {
					n |= int64(delta[0]) << (8 * (i - 4))
				}
				delta = delta[1:]
			}
			if n == 0 {
				n = 0x10000
			}
			if off+n > int64(len(base)) || int64(out.Len())+n > size {
				return nil, errDelta
			}
			out.Write(base[off : off+n])
		case op != 0:
			n := int(op)
			if n > len(delta) || int64(out.Len()+n) > size {
				return nil, errDelta
			}
			out.Write(delta[:n])
			delta = delta[n:]
		default:
			return nil, errDelta
		}
	}
	if int64(out.Len()) != size {
		return nil, errDelta
	}
	return out.Bytes(), nil
}

func deltaSize(b []byte) (int64, []byte, bool) {
	var n int64
	for i := 0; i < len(b) && i < 9; i++ {
		n |= int64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}
