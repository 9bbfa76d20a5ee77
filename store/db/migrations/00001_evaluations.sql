-- +goose Up
-- Plain types that SQLite and PostgreSQL both know. Times are UTC, RFC 3339 with
-- nine digits of a second, so that they sort as text; durations are in ns.
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
);

CREATE INDEX evaluations_created ON evaluations (created);

-- One row for each sample; value is in the base unit named by unit.
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

-- +goose Down
DROP TABLE samples;
DROP TABLE evaluations;
