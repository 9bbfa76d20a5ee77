// Command runner is a bot that can do nothing but run programs in boxes: the
// tests measure with it, since a test binary is larger than a bot's runner.
//
//	runner hold boxed|unsafe FOLDER LINE
//
// runs a shell line, with FOLDER as /build/out and, for reading, as /build/in,
// and prints its Result, and lets nobody interrupt it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"

	"patchbench/bench/sandbox"
)

func main() {
	sandbox.Main()
	if len(os.Args) != 5 || os.Args[1] != "hold" {
		fmt.Fprintln(os.Stderr, "usage: runner hold boxed|unsafe FOLDER LINE")
		os.Exit(2)
	}
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := hold(os.Args[2] == "unsafe", os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hold(unsafe bool, dir, line string) error {
	ctx := context.Background()
	s, err := sandbox.Open(ctx, sandbox.Options{Unsafe: unsafe})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Own(dir); err != nil {
		return err
	}
	r, err := s.Start(ctx, sandbox.Box{Mounts: []sandbox.Mount{
		{Host: dir, Inside: "/build/out", Write: true}, {Host: dir, Inside: "/build/in"},
	}})
	if err != nil {
		return err
	}
	defer r.Close()
	res, err := r.Do(ctx, sandbox.Command{Args: []string{"sh", "-c", line}, Dir: "/build/out", KeepStdout: 64 << 10})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}
