package dbtest

import (
	"context"
	"database/sql/driver"
	"sync"
)

// Fault stands between a store and its database and has something happen before
// and after each statement, the beginnings and ends of transactions among them.
type Fault struct {
	mu   sync.Mutex
	hook func(when string)
}

// Set has hook called around each statement from now on, by one goroutine at a
// time, with the statement, or BEGIN, COMMIT or ROLLBACK, behind "before " or
// "after "; nil for nothing. The hook of before is not called any more then.
func (f *Fault) Set(hook func(when string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

func (f *Fault) call(when string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hook != nil {
		f.hook(when)
	}
}

// Wrap is for db.Options.
func (f *Fault) Wrap(c driver.Connector) driver.Connector { return faultyConnector{c, f} }

type faultyConnector struct {
	driver.Connector
	fault *Fault
}

func (c faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{conn, c.fault}, nil
}

// faultyConn passes on what both drivers can do.
type faultyConn struct {
	driver.Conn
	fault *Fault
}

func (c *faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.fault.call("before BEGIN")
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.fault.call("after BEGIN")
	return faultyTx{tx, c.fault}, nil
}

func (c *faultyConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	c.fault.call("before " + q)
	defer c.fault.call("after " + q)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
}

func (c *faultyConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	c.fault.call("before " + q)
	defer c.fault.call("after " + q)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (c *faultyConn) PrepareContext(ctx context.Context, q string) (driver.Stmt, error) {
	stmt, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	return &faultyStmt{stmt, q, c.fault}, nil
}

func (c *faultyConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *faultyConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *faultyConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

type faultyStmt struct {
	driver.Stmt
	query string
	fault *Fault
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.fault.call("before " + s.query)
	defer s.fault.call("after " + s.query)
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.fault.call("before " + s.query)
	defer s.fault.call("after " + s.query)
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

type faultyTx struct {
	driver.Tx
	fault *Fault
}

func (t faultyTx) Commit() error {
	t.fault.call("before COMMIT")
	defer t.fault.call("after COMMIT")
	return t.Tx.Commit()
}

func (t faultyTx) Rollback() error {
	t.fault.call("before ROLLBACK")
	defer t.fault.call("after ROLLBACK")
	return t.Tx.Rollback()
}
