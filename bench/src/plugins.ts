import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { middle } from './load.ts'
import type { Options } from './options.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'

const CALLS = { process: 2_000, quickjs: 200, direct: 2_000, bare: 2_000 }
type Subject = keyof typeof CALLS

/** One call of a tool in each mode of isolation, through a host, against a bare round trip to another process. Without bubblewrap nothing is measured. */
export async function* plugins({ svc, rounds }: Options): AsyncGenerator<Figure> {
  if (spawnSync('bwrap', ['--version']).status !== 0) return
  const flags = svc.filter(word => word.startsWith('--conditions'))
  const child = fork(fileURLToPath(new URL('../peers/plugin-calls.js', import.meta.url)), { execArgv: flags })
  await once(child, 'message')
  try {
    yield* compare(child, rounds)
  } finally {
    child.disconnect()
  }
}

async function* compare(child: ChildProcess, rounds: number): AsyncGenerator<Figure> {
  const subject = (who: Subject) => async () => middle(await timesOf(child, who))
  const subjects = {
    process: subject('process'),
    quickjs: subject('quickjs'),
    direct: subject('direct'),
    bare: subject('bare'),
  }
  for (const item of Object.values(subjects)) await item()
  const times = await interleave(subjects, rounds)
  const common = { bench: 'plugins', unit: 'µs p50', anchor: 'a bare round trip over IPC', better: 'less' } as const
  const anchorValue = middle(times.bare) * 1000
  const figure = (what: string, who: Exclude<Subject, 'bare'>) => ({
    ...common,
    what,
    value: middle(times[who]) * 1000,
    anchorValue,
    ratio: ratioOf(times[who], times.bare),
  })
  yield { ...figure('a call of an isolated tool, in the sandbox', 'process'), must: 4 }
  yield figure('the same in the JavaScript sandbox', 'quickjs')
  yield figure('the same in the process of the host', 'direct')
}

/** Times its calls one by one. */
async function timesOf(child: ChildProcess, who: Subject): Promise<readonly number[]> {
  const answer = Promise.withResolvers<readonly number[]>()
  const lost = () => answer.reject(new Error('the program that calls has ended'))
  child.once('message', times => answer.resolve(times as number[]))
  child.once('exit', lost)
  child.send({ who, calls: CALLS[who] })
  return await answer.promise.finally(() => child.off('exit', lost))
}
