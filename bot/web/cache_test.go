package web

import (
	"fmt"
	"testing"
)

func TestCache(t *testing.T) {
	var c cache
	put := func(name, tag string, size int) {
		c.put(&rendered{name: name, tag: tag, body: make([]byte, size)})
	}
	for i := range 40 {
		put(fmt.Sprint(i), "a", 1<<20)
		if c.get("0", "a") == nil {
			t.Fatalf("what is used all the time is dropped after %d others", i)
		}
	}
	if c.bytes != cacheBytes || c.order.Len() != 32 || len(c.entries) != 32 {
		t.Errorf("%d bytes, %d entries", c.bytes, c.order.Len())
	}
	if c.get("1", "a") != nil {
		t.Error("what was used least is kept")
	}
	put("0", "b", 10)
	if c.get("0", "a") != nil || c.get("0", "b") == nil {
		t.Error("a new state does not take the place of the old one")
	}
	put("39", "b", cacheBytes)
	if c.get("39", "a") != nil || c.get("39", "b") != nil {
		t.Error("what is too large, or its state before, is kept")
	}
	if sum := 30<<20 + 10; c.bytes != sum {
		t.Errorf("%d bytes, want %d", c.bytes, sum)
	}
}
