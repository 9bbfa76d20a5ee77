package web

import (
	"container/list"
	"sync"
)

// cacheBytes bounds the reports that are kept rendered.
const cacheBytes = 32 << 20

// cache keeps what was rendered last, by name, each for one state of the record.
// The zero value is empty.
type cache struct {
	mu      sync.Mutex
	entries map[string]*list.Element
	order   list.List // of *rendered, what was used last in front
	bytes   int
}

// rendered is an answer's body, plain and packed with gzip.
type rendered struct {
	name, tag    string
	body, packed []byte
	policy       string // for a page
}

func (r *rendered) size() int { return len(r.body) + len(r.packed) }

func (c *cache) get(name, tag string) *rendered {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[name]
	if e == nil || e.Value.(*rendered).tag != tag {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*rendered)
}

func (c *cache) put(r *rendered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	if e := c.entries[r.name]; e != nil {
		c.drop(e)
	}
	if r.size() > cacheBytes/4 {
		return
	}
	c.entries[r.name] = c.order.PushFront(r)
	c.bytes += r.size()
	for c.bytes > cacheBytes {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	r := c.order.Remove(e).(*rendered)
	delete(c.entries, r.name)
	c.bytes -= r.size()
}
