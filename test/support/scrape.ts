/** One sample of a scrape. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** The metrics of a process at one moment. */
export interface Scrape {
  text: string;
  samples: Sample[];
  /** The value of the only sample with this name and at least these labels. Undefined without one. */
  value(name: string, labels?: Record<string, string>): number | undefined;
}

export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(url);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} answers ${response.status}`);
  const samples = text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(parseSample);
  return {
    text,
    samples,
    value(name, labels = {}) {
      const found = samples.filter(
        (sample) =>
          sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
      );
      if (found.length > 1) throw new Error(`${found.length} samples are ${name} ${JSON.stringify(labels)}`);
      return found[0]?.value;
    },
  };
}

function parseSample(line: string): Sample {
  const [, name, labels = "", value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === undefined || value === undefined) throw new Error(`this is no sample: ${line}`);
  return {
    name,
    labels: Object.fromEntries(
      Array.from(labels.matchAll(/(\w+)="([^"]*)"/g), ([, label = "", of = ""]) => [label, of]),
    ),
    value: Number(value),
  };
}
