-- What runs, and what is wrong with it. Each process keeps its own row of `processes` up to date. The faults that operators see are in `faults`,
-- with what ALERT_URL was told of them.

CREATE TABLE processes (
  id text COLLATE "C" PRIMARY KEY,
  role text COLLATE "C" NOT NULL,
  host text NOT NULL,
  pid integer NOT NULL,
  version text NOT NULL,
  queues text[] NOT NULL, -- Whose jobs it takes.
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  busy real NOT NULL, -- The share of the last seconds in which its event loop was busy.
  problem text, -- Why it cannot serve requests.
  canary_at timestamptz -- When a worker last committed one of its canaries.
)
-- No update changes an indexed column, and there is room for a new version beside the old one: every update is heap-only.
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE faults (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text COLLATE "C" NOT NULL, -- As in the runbook.
  subject text NOT NULL, -- Whom or what it affects.
  page text COLLATE "C" NOT NULL, -- The operator page of the subject, after /ops. Empty without one.
  severity text COLLATE "C" NOT NULL CHECK (severity IN ('red', 'amber', 'grey')),
  what text NOT NULL,
  since timestamptz NOT NULL,
  ended_at timestamptz, -- When a look first missed it; null while looks find it.
  told text COLLATE "C" CHECK (told IN ('begin', 'end')), -- The last message that ALERT_URL has accepted.
  tried_at timestamptz, -- When the next message was last tried.
  failing_since timestamptz, -- Since when it is not accepted.
  UNIQUE (kind, subject, page)
);
