-- When an API process that can serve requests last looked for faults. One that cannot see the others judges only itself
-- while another one looks.
CREATE TABLE last_look (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  looked_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO last_look DEFAULT VALUES;
