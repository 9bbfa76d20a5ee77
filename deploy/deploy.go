// Package deploy carries what is delivered with the command: the demonstration
// project of `bot demo`, a small Go program with a series of five patches whose
// effects are known.
package deploy

import _ "embed"

// DemoBase is the demonstration project as a txtar archive.
//
//go:embed demo/base.txtar
var DemoBase []byte

// DemoSeries is the mailbox with the series of five patches.
//
//go:embed demo/series.mbox
var DemoSeries []byte
