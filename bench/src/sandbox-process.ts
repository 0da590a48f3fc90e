import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { middle } from './load.ts'
import type { Options } from './options.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'

const CALLS = { cold: 16, warm: 2_000 } as const
type Kind = keyof typeof CALLS

interface Called {
  readonly times: readonly number[]
  /** Milliseconds of processor time a call, of all processes that it took; of a warm call, of the caller alone. */
  readonly cpu: number
}

const MEASURED = {
  cold: {
    what: 'process sandbox, from nothing to the first answer',
    raw: 'bwrap',
    anchor: 'bwrap with node, by hand',
    must: 1.15,
  },
  warm: { what: 'process sandbox, a warm call over stdio', raw: 'bare', anchor: 'a bare stdio call', must: 3, aim: 1.5 },
} as const

/** A server over stdio in the process sandbox, against bubblewrap by hand and against nothing. Where there is no bubblewrap, nothing is measured. */
export async function* processes({ svc, rounds }: Options): AsyncGenerator<Figure> {
  if (spawnSync('bwrap', ['--version']).status !== 0) return
  const flags = svc.filter(word => word.startsWith('--conditions'))
  const child = fork(fileURLToPath(new URL('../peers/process-calls.js', import.meta.url)), { execArgv: flags })
  await once(child, 'message')
  try {
    for (const kind of ['cold', 'warm'] as const) yield* compare(child, kind, rounds)
  } finally {
    child.disconnect()
  }
}

async function* compare(child: ChildProcess, kind: Kind, rounds: number): AsyncGenerator<Figure> {
  const { raw, ...told } = MEASURED[kind]
  const cpu = { ours: [] as number[], raw: [] as number[] }
  const subject = (who: string, costs: number[]) => async () => {
    const called = await call(child, who, kind)
    costs.push(called.cpu)
    return middle(called.times)
  }
  const subjects = { ours: subject('ours', cpu.ours), raw: subject(raw, cpu.raw) }
  for (const one of Object.values(subjects)) await one()
  for (const costs of Object.values(cpu)) costs.length = 0
  const times = await interleave(subjects, rounds)
  const [scale, unit] = kind === 'cold' ? [1, 'ms'] : [1000, 'µs']
  const figure = (figures: Readonly<Record<'ours' | 'raw', readonly number[]>>, by: string): Figure => ({
    bench: 'sandbox',
    ...told,
    value: middle(figures.ours) * scale,
    unit: `${unit} ${by}`,
    anchorValue: middle(figures.raw) * scale,
    ratio: ratioOf(figures.ours, figures.raw),
    better: 'less',
  })
  yield figure(times, 'p50')
  // what answers a warm call has not ended: its time is in no sum yet
  if (kind === 'cold') yield figure(cpu, 'CPU')
}

/** How long its calls took: it is asked one thing at a time. */
async function call(child: ChildProcess, who: string, kind: Kind): Promise<Called> {
  const answer = Promise.withResolvers<Called>()
  const lost = () => answer.reject(new Error('the program that calls has ended'))
  child.once('message', called => answer.resolve(called as Called))
  child.once('exit', lost)
  child.send({ who, kind, calls: CALLS[kind] })
  return await answer.promise.finally(() => child.off('exit', lost))
}
