-- What was told of red faults at ALERT_URL. Several API processes and those that replace them tell each beginning and end once.
CREATE TABLE alerts (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  version integer NOT NULL DEFAULT 0 CHECK (version >= 0), -- Grows with each change. A process that knows an older one changes nothing.
  state jsonb NOT NULL DEFAULT '{"alerts": []}' CHECK (jsonb_typeof(state) = 'object')
);
INSERT INTO alerts DEFAULT VALUES;
