import { type Load, type Loaded, middle, run } from './load.ts'
import { interleave, type Rounds, ratioOf, spreadOf } from './rounds.ts'
import type { Server } from './server.ts'

/** Results of servers under load, one value per round. */
export interface Measured<N extends string> {
  /** Responses per second. */
  readonly rates: Rounds<N>
  /** Microseconds of processor time per response. */
  readonly costs: Rounds<N>
  /** Median latency in milliseconds. */
  readonly p50: Rounds<N>
  /** 99th percentile of the latency in milliseconds. */
  readonly p99: Rounds<N>
  /** Median milliseconds until the mark of the load. */
  readonly marked: Rounds<N>
}

/** Warm-up responses before a measurement, until the code is compiled. */
const WARM = 20_000
const WARM_LIMIT_MS = 60_000

/** Measures servers in turn, each after `warm` responses. */
export async function measure<N extends string>(
  servers: Readonly<Record<N, Server>>,
  loadOf: (server: Server, name: N) => Load,
  rounds: number,
  warm = WARM
): Promise<Measured<N>> {
  const names = Object.keys(servers) as N[]
  for (const name of names) await warmUp(loadOf(servers[name], name), warm)
  const all = Object.fromEntries(names.map(name => [name, [] as Measurement[]])) as Record<N, Measurement[]>
  const subjects = Object.fromEntries(names.map(name => [name, subjectOf(servers[name], loadOf(servers[name], name), all[name])]))
  await interleave(subjects as Record<N, () => Promise<number>>, rounds)
  const pick = (figure: (measurement: Measurement) => number) =>
    Object.fromEntries(names.map(name => [name, all[name].map(figure)])) as Record<N, number[]>
  return {
    rates: pick(item => item.perSecond),
    costs: pick(item => item.cpu / item.answers),
    p50: pick(item => item.p50),
    p99: pick(item => item.p99),
    marked: pick(item => item.marked),
  }
}

type Measurement = Loaded & { readonly cpu: number }

const subjectOf = (server: Server, load: Load, into: Measurement[]) => async () => {
  const before = server.cpu()
  const loaded = await run(load)
  into.push({ ...loaded, cpu: server.cpu() - before })
  return loaded.perSecond
}

async function warmUp(load: Load, wanted: number): Promise<void> {
  const until = performance.now() + WARM_LIMIT_MS
  for (let answers = 0; answers < wanted && performance.now() < until; ) answers += (await run(load)).answers
}

/** The ratio of two subjects. */
export const compared = <N extends string>(what: string, figures: Rounds<N>, name: N, anchor: N) => ({
  what,
  value: middle(figures[name]),
  anchorValue: middle(figures[anchor]),
  ratio: ratioOf(figures[name], figures[anchor]),
  spread: spreadOf(figures[name], figures[anchor]),
})
