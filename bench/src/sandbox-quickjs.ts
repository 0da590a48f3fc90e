import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { middle } from './load.ts'
import type { Options } from './options.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'

const CODE = '[1, 2, 3, 4].map(one => one * 2).reduce((sum, one) => sum + one, 0)'
const EXPECTED = 20
const WARM_CALLS = 300
const CALLS = { warm: 200, fresh: 40 } as const

type Kind = keyof typeof CALLS
interface Called {
  readonly times: readonly number[]
  /** Microseconds of processor time per call, over all threads. */
  readonly cpu: number
}

/** A script in the sandbox compared to QuickJS by hand in a thread, for a known and a new tenant. */
export async function* quickjs({ svc, rounds }: Options): AsyncGenerator<Figure> {
  const flags = svc.filter(word => word.startsWith('--conditions'))
  const programs = { ours: await start('quickjs-svc', flags), raw: await start('quickjs-raw', []) }
  try {
    for (const program of Object.values(programs)) await call(program, 'warm', WARM_CALLS)
    for (const kind of ['warm', 'fresh'] as const) yield* compare(programs, kind, rounds)
  } finally {
    for (const program of Object.values(programs)) program.disconnect()
  }
}

async function* compare(programs: Record<'ours' | 'raw', ChildProcess>, kind: Kind, rounds: number): AsyncGenerator<Figure> {
  const all = { ours: [] as Called[], raw: [] as Called[] }
  const subject = (name: 'ours' | 'raw') => async () => {
    const called = await call(programs[name], kind, CALLS[kind])
    all[name].push(called)
    return middle(called.times) * 1000
  }
  const p50 = await interleave({ ours: subject('ours'), raw: subject('raw') }, rounds)
  const cpu = { ours: all.ours.map(our => our.cpu), raw: all.raw.map(item => item.cpu) }
  const what = kind === 'warm' ? 'QuickJS, a warm call' : 'QuickJS, a fresh tenant'
  const anchor = kind === 'warm' ? 'raw quickjs, a fresh context, a worker message' : 'a fresh module instance, capped memory'
  const targets = kind === 'warm' ? { must: 2, aim: 1.3 } : { must: 1.3, aim: 1.1 }
  for (const [unit, figures] of [
    ['µs p50', p50],
    ['µs CPU', cpu],
  ] as const)
    yield {
      bench: 'sandbox',
      what,
      value: middle(figures.ours),
      unit,
      anchor,
      anchorValue: middle(figures.raw),
      ratio: ratioOf(figures.ours, figures.raw),
      better: 'less',
      ...targets,
    }
}

async function start(name: string, execArgv: readonly string[]): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL(`../peers/${name}.js`, import.meta.url)), { execArgv: [...execArgv] })
  await once(child, 'message')
  return child
}

async function call(child: ChildProcess, kind: Kind, calls: number): Promise<Called> {
  const over = new AbortController()
  const { signal } = over
  child.send({ code: CODE, expected: EXPECTED, calls, fresh: kind === 'fresh' })
  const ended = once(child, 'exit', { signal }).then(() => Promise.reject(new Error(`${child.spawnargs.join(' ')} ended`)))
  try {
    const [called] = (await Promise.race([once(child, 'message', { signal }), ended])) as [Called]
    return called
  } finally {
    ended.catch(() => {})
    over.abort()
  }
}
