-- Faults that operators see, since when each exists, and until when it did. Redis has those of the last look, and may lose them.

CREATE TABLE faults (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  began_at timestamptz NOT NULL,
  ended_at timestamptz,
  name text COLLATE "C" NOT NULL CHECK (name <> ''), -- As in the runbook.
  subject text NOT NULL, -- Whom or what it touches.
  page text COLLATE "C" NOT NULL, -- The operator page of the subject, after /ops. Empty without one.
  severity text COLLATE "C" NOT NULL CHECK (severity IN ('red', 'amber', 'grey')),
  what text NOT NULL,
  CHECK (ended_at >= began_at)
);

-- A fault is open once.
CREATE UNIQUE INDEX faults_open ON faults (name, subject, page) WHERE ended_at IS NULL;
CREATE INDEX faults_ended ON faults (ended_at) WHERE ended_at IS NOT NULL;
