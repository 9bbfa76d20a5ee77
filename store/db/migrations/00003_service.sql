-- +goose Up
-- What the service keeps. Times as in 00001, '' for none. The words IDENTITY (a
-- number given by the database, never twice) and BYTES are put in for each database.

-- How far each source of mail has been read.
CREATE TABLE cursors (
    source TEXT NOT NULL PRIMARY KEY,
    place  TEXT NOT NULL,
    moved  TEXT NOT NULL
);

CREATE TABLE mails (
    id       IDENTITY,
    sha256   TEXT NOT NULL UNIQUE, -- of the bytes as received
    mail_key TEXT NOT NULL, -- Message-ID, or sha256:HEX
    source   TEXT NOT NULL,
    received TEXT NOT NULL,
    taken    TEXT NOT NULL,
    problem  TEXT NOT NULL,
    raw      BYTES NOT NULL -- gzip
);

CREATE INDEX mails_key ON mails (mail_key);
CREATE INDEX mails_taken ON mails (taken);
CREATE INDEX mails_source ON mails (source, received);

CREATE TABLE tasks (
    id          IDENTITY,
    task_key    TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL,
    project     TEXT NOT NULL,
    class       TEXT NOT NULL,
    list        TEXT NOT NULL,
    ref         TEXT NOT NULL,
    title       TEXT NOT NULL,
    author_name TEXT NOT NULL,
    author      TEXT NOT NULL, -- address, lower case
    version     INTEGER NOT NULL,
    content     TEXT NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT NOT NULL,
    created     TEXT NOT NULL,
    started     TEXT NOT NULL,
    ended       TEXT NOT NULL,
    worker      TEXT NOT NULL,
    fence       BIGINT NOT NULL,
    lease       TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    deaths      INTEGER NOT NULL, -- workers that were killed while they had it
    progress    TEXT NOT NULL,
    evaluation  TEXT NOT NULL,
    supersedes  TEXT NOT NULL,
    due         TEXT NOT NULL, -- a queued task gets no job before
    job         BIGINT NOT NULL, -- of the queue, the last one; 0 for none
    payload     BYTES NOT NULL
);

CREATE INDEX tasks_state ON tasks (state);
CREATE INDEX tasks_ref ON tasks (ref);
CREATE INDEX tasks_author ON tasks (author, created);
CREATE INDEX tasks_created ON tasks (created);
CREATE INDEX tasks_evaluation ON tasks (evaluation) WHERE evaluation <> '';

CREATE TABLE letters (
    id         IDENTITY,
    letter_key TEXT NOT NULL UNIQUE,
    task       BIGINT NOT NULL, -- 0 for none
    channel    TEXT NOT NULL,
    message_id TEXT NOT NULL,
    sender     TEXT NOT NULL,
    recipients TEXT NOT NULL, -- JSON
    subject    TEXT NOT NULL,
    state      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    approved   INTEGER NOT NULL, -- 1 by hand
    attempts   INTEGER NOT NULL,
    next       TEXT NOT NULL, -- not sent before
    created    TEXT NOT NULL,
    started    TEXT NOT NULL,
    ended      TEXT NOT NULL,
    body       BYTES NOT NULL
);

CREATE INDEX letters_state ON letters (state, next);
CREATE INDEX letters_message_id ON letters (message_id);

-- What should stand at pull requests.
CREATE TABLE notices (
    repo       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    head       TEXT NOT NULL,
    comment    TEXT NOT NULL,
    check_run  TEXT NOT NULL, -- JSON
    seq        BIGINT NOT NULL, -- counts changes
    sent       BIGINT NOT NULL, -- the seq that was delivered last
    lent       BIGINT NOT NULL, -- counts deliveries begun
    comment_id BIGINT NOT NULL,
    check_id   BIGINT NOT NULL,
    check_head TEXT NOT NULL,
    next       TEXT NOT NULL, -- not delivered before
    attempts   INTEGER NOT NULL,
    reason     TEXT NOT NULL,
    PRIMARY KEY (repo, number)
);

CREATE INDEX notices_due ON notices (next) WHERE sent < seq;

-- Webhook deliveries that were taken.
CREATE TABLE deliveries (
    id   TEXT NOT NULL PRIMARY KEY,
    seen TEXT NOT NULL
);

CREATE INDEX deliveries_seen ON deliveries (seen);

-- Small things under a name.
CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- +goose Down
DROP TABLE settings;
DROP TABLE deliveries;
DROP TABLE notices;
DROP TABLE letters;
DROP TABLE tasks;
DROP TABLE mails;
DROP TABLE cursors;
