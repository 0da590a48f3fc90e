/** One series of a metric as it stands. */
export interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Series by the text that they are written with. */
export type Metrics = ReadonlyMap<string, Series>

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** Reads metrics in the text format of Prometheus; what is no sample is passed over. */
export function parseMetrics(text: string): Metrics {
  const all = new Map<string, Series>()
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line) ?? []
    if (name !== undefined) all.set(`${name}{${labels}}`, { name, labels: labelsOf(labels), value: Number(value) })
  }
  return all
}

const labelsOf = (text: string) => Object.fromEntries([...text.matchAll(LABEL)].map(([, name, value]) => [name, plain(value!)]))

const plain = (value: string) => value.replaceAll(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char))

/** What was added since then. A series that fell began anew: all of it is new. */
export function grownSince(before: Metrics, now: Metrics): Metrics {
  const grown = [...now].map(([key, series]): [string, Series] => {
    const then = before.get(key)?.value ?? 0
    return [key, { ...series, value: series.value < then ? series.value : series.value - then }]
  })
  return new Map(grown)
}
