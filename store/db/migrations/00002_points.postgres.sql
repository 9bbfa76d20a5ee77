-- +goose Up
-- What evaluations measured of their base, a row for each row of results, so that
-- a history need not read whole records.
ALTER TABLE evaluations ADD COLUMN origin TEXT NOT NULL DEFAULT '{}'; -- base and host as JSON

CREATE TABLE points (
    evaluation TEXT NOT NULL REFERENCES evaluations (id) ON DELETE CASCADE,
    n          INTEGER NOT NULL, -- place among the results, from 0
    benchmark  TEXT NOT NULL,
    row_name   TEXT NOT NULL, -- benchmark with its parameters
    metric     TEXT NOT NULL,
    point      TEXT NOT NULL, -- JSON
    PRIMARY KEY (evaluation, n)
);

CREATE INDEX points_benchmark ON points (benchmark, metric);
CREATE INDEX points_row_name ON points (row_name, metric);

-- +goose Down
DROP TABLE points;
ALTER TABLE evaluations DROP COLUMN origin;
