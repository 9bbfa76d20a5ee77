-- A store as schema 2 had it, dumped.
PRAGMA application_id = 1349796462;
PRAGMA journal_mode = WAL;
BEGIN TRANSACTION;
CREATE TABLE evaluations (
    id         TEXT NOT NULL PRIMARY KEY,
    created    TEXT NOT NULL,
    subject    TEXT NOT NULL,
    suite      TEXT NOT NULL,
    host       TEXT NOT NULL,
    rounds     INTEGER NOT NULL,
    stopped    TEXT NOT NULL,
    verdict    TEXT NOT NULL,
    headline   TEXT NOT NULL,
    build_ns   BIGINT NOT NULL,
    measure_ns BIGINT NOT NULL,
    record     TEXT NOT NULL -- the evaluation as JSON
, origin TEXT NOT NULL DEFAULT '{}');
INSERT INTO "evaluations" VALUES('20260102-0a1b2c','2026-01-02T03:04:05.000000000Z','table: grow by half','kit','bench1',20,'decided','same','no change',0,0,'{"id":"20260102-0a1b2c","created":"2026-01-02T03:04:05Z","series":{"message_id":"one@example.org","subject":"table: grow by half","tags":[],"version":1,"total":1,"received":1,"complete":true,"missing":[],"author":{"name":"","email":""},"date":"0001-01-01T00:00:00Z","lists":[],"cover":null,"base":null,"supersedes":null,"patches":[]},"base":{"commit":"0123","how":"branch","reason":"tip of main"},"suite":{"name":"kit","digest":"ab"},"host":{"name":"bench1","cpu":"","cores":0,"kernel":"","memory_bytes":0,"sandbox":"","load_before":0,"load_after":0,"pressure_before":0,"pressure_after":0},"versions":[],"results":[{"benchmark":"hash","params":{"n":"3"},"metric":"cpu","unit":"s","better":"lower","exact":false,"tested":true,"rounds":20,"detectable":null,"values":[{"n":0,"median":0.5,"lo":null,"hi":null,"samples":20}],"steps":[],"total":{"n":0,"change":null,"lo":null,"hi":null,"p":null,"verdict":"","reason":"","group":null},"warnings":[]}],"failures":[],"claims":[],"rounds":20,"seed":0,"stopped":"decided","margin":0,"verdict":"same","headline":"no change","warnings":[],"command":"","build_seconds":0,"measure_seconds":0}
','{"base":{"commit":"0123","how":"branch","reason":"tip of main"},"host":{"name":"bench1","cpu":"","cores":0,"kernel":"","memory_bytes":0,"sandbox":"","load_before":0,"load_after":0,"pressure_before":0,"pressure_after":0}}');
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO "goose_db_version" VALUES(1,0,1,'2026-11-30 19:33:54');
INSERT INTO "goose_db_version" VALUES(2,1,1,'2026-11-30 19:33:54');
INSERT INTO "goose_db_version" VALUES(3,2,1,'2026-11-30 19:33:54');
CREATE TABLE points (
    evaluation TEXT NOT NULL REFERENCES evaluations (id) ON DELETE CASCADE,
    n          INTEGER NOT NULL, -- place among the results, from 0
    benchmark  TEXT NOT NULL,
    row_name   TEXT NOT NULL, -- benchmark with its parameters
    metric     TEXT NOT NULL,
    point      TEXT NOT NULL, -- JSON
    PRIMARY KEY (evaluation, n)
);
INSERT INTO "points" VALUES('20260102-0a1b2c',0,'hash','hash{n=3}','cpu','{"params":{"n":"3"},"unit":"s","better":"lower","exact":false,"tested":true,"rounds":20,"value":{"n":0,"median":0.5,"lo":null,"hi":null,"samples":20}}');
CREATE TABLE samples (
    evaluation    TEXT NOT NULL REFERENCES evaluations (id) ON DELETE CASCADE,
    seq           BIGINT NOT NULL, -- order of measuring, from 1
    round         INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    twin          BOOLEAN NOT NULL,
    benchmark     TEXT NOT NULL,
    params        TEXT, -- JSON object
    metric        TEXT NOT NULL,
    unit          TEXT NOT NULL,
    value         DOUBLE PRECISION NOT NULL,
    failed        BOOLEAN NOT NULL,
    failed_signal TEXT NOT NULL,
    failed_status INTEGER NOT NULL,
    failed_reason TEXT NOT NULL,
    discarded     TEXT NOT NULL,
    position      INTEGER,
    covariates    TEXT, -- JSON object
    PRIMARY KEY (evaluation, seq)
);
INSERT INTO "samples" VALUES('20260102-0a1b2c',1,1,0,0,'hash','{"n":"3"}','cpu','s',0.5,0,'',0,'','',NULL,NULL);
CREATE INDEX evaluations_created ON evaluations (created);
CREATE INDEX points_benchmark ON points (benchmark, metric);
CREATE INDEX points_row_name ON points (row_name, metric);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('goose_db_version',3);
COMMIT;
