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

UPDATE evaluations SET origin = json_object('base', json_extract(record, '$.base'), 'host', json_extract(record, '$.host'));

INSERT INTO points (evaluation, n, benchmark, row_name, metric, point)
SELECT e.id, r.key, json_extract(r.value, '$.benchmark'),
    json_extract(r.value, '$.benchmark') || coalesce((
        SELECT '{' || group_concat(p.key || '=' || p.value, ',' ORDER BY p.key) || '}' FROM json_each(r.value, '$.params') AS p), ''),
    json_extract(r.value, '$.metric'),
    json_object('params', json_extract(r.value, '$.params'), 'unit', json_extract(r.value, '$.unit'), 'better', json_extract(r.value, '$.better'),
        'exact', json(CASE WHEN json_extract(r.value, '$.exact') THEN 'true' ELSE 'false' END),
        'tested', json(CASE WHEN json_extract(r.value, '$.tested') THEN 'true' ELSE 'false' END),
        'rounds', json_extract(r.value, '$.rounds'), 'value', json(v.value))
FROM evaluations AS e, json_each(e.record, '$.results') AS r, json_each(r.value, '$.values') AS v
WHERE json_extract(v.value, '$.n') = 0 AND json_extract(v.value, '$.median') IS NOT NULL;

-- +goose Down
DROP TABLE points;
ALTER TABLE evaluations DROP COLUMN origin;
