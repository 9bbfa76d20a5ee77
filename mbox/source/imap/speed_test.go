package imap

import (
	"context"
	"runtime"
	"testing"

	"patchbench/mbox/source/feed"
)

// BenchmarkFollow fetches 10,000 mails from the in-memory server, which runs in
// this process. heap-MB is the largest heap met when a batch was taken, less what
// was there before: the server's work is in it.
func BenchmarkFollow(b *testing.B) {
	const mails = 10_000
	s := memoryServer(b)
	s.deliver(b, 0, mails)
	src := newSource(b, s.options())
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	b.ResetTimer()
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		n := 0
		src.Follow(ctx, cursor{Validity: 1, Next: 1}.String(), func(_ context.Context, batch feed.Batch) error {
			if n += len(batch.Mails); n == mails {
				cancel()
			}
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
			return nil
		}, func(e feed.Event) { b.Error(e) })
		if n != mails {
			b.Fatalf("%d mails", n)
		}
	}
	b.ReportMetric(mails*float64(b.N)/b.Elapsed().Seconds(), "mails/s")
	b.ReportMetric((float64(peak)-float64(before.HeapAlloc))/(1<<20), "heap-MB")
}
