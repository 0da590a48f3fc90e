import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { middle } from './load.ts'
import type { Options } from './options.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'

const CALLS = { cold: 16, warm: 2_000 } as const
type Kind = keyof typeof CALLS

const MEASURED = {
  cold: {
    what: 'process sandbox, from nothing to the first answer',
    raw: 'bwrap',
    anchor: 'bwrap with node, by hand',
    must: 1.15,
  },
  warm: { what: 'process sandbox, a warm call over stdio', raw: 'bare', anchor: 'a bare stdio call', must: 3, aim: 1.5 },
} as const

/** A stdio server in the process sandbox, compared to bubblewrap by hand and to none. Without bubblewrap nothing is measured. */
export async function* processes({ svc, rounds }: Options): AsyncGenerator<Figure> {
  if (spawnSync('bwrap', ['--version']).status !== 0) return
  const flags = svc.filter(word => word.startsWith('--conditions'))
  const child = fork(fileURLToPath(new URL('../peers/process-calls.js', import.meta.url)), { execArgv: flags })
  await once(child, 'message')
  try {
    for (const kind of ['cold', 'warm'] as const) yield await compare(child, kind, rounds)
  } finally {
    child.disconnect()
  }
}

async function compare(child: ChildProcess, kind: Kind, rounds: number): Promise<Figure> {
  const { raw, ...values } = MEASURED[kind]
  const subject = (who: string) => async () => middle(await call(child, who, kind))
  const subjects = { ours: subject('ours'), raw: subject(raw) }
  for (const item of Object.values(subjects)) await item()
  const times = await interleave(subjects, rounds)
  const [scale, unit] = kind === 'cold' ? [1, 'ms'] : [1000, 'µs']
  return {
    bench: 'sandbox',
    ...values,
    value: middle(times.ours) * scale,
    unit: `${unit} p50`,
    anchorValue: middle(times.raw) * scale,
    ratio: ratioOf(times.ours, times.raw),
    better: 'less',
  }
}

/** Times its calls one by one. */
async function call(child: ChildProcess, who: string, kind: Kind): Promise<readonly number[]> {
  const answer = Promise.withResolvers<readonly number[]>()
  const lost = () => answer.reject(new Error('the program that calls has ended'))
  child.once('message', times => answer.resolve(times as number[]))
  child.once('exit', lost)
  child.send({ who, kind, calls: CALLS[kind] })
  return await answer.promise.finally(() => child.off('exit', lost))
}
