import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { compared } from './compare.ts'
import type { Options } from './options.ts'
import type { Figure } from './report.ts'
import { interleave } from './rounds.ts'

const SUBJECTS = [
  'ours 0',
  'tapable 0',
  'ours 1',
  'tapable 1',
  'ours 10',
  'plain 10',
  'tapable 10',
  'ours 100',
  'tapable 100',
] as const
type Name = (typeof SUBJECTS)[number]
/** Number of calls per round, for a hook with this number of taps: a round takes a few tenths of a second. */
const CALLS: Readonly<Record<string, number>> = { 0: 5_000_000, 1: 1_000_000, 10: 200_000, 100: 20_000 }
const tapsOf = (name: Name) => name.split(' ')[1]!

/** The cost of calling a hook for its owner, by the number of asynchronous taps, in processor time. */
export async function* hooks({ svc, rounds }: Options): AsyncGenerator<Figure> {
  const flags = svc.filter(word => word.startsWith('--conditions'))
  const programs = {} as Record<Name, ChildProcess>
  for (const name of SUBJECTS) programs[name] = await start(name, flags)
  try {
    for (const name of SUBJECTS) await cost(name, programs[name])
    const subjects = SUBJECTS.map(name => [name, () => cost(name, programs[name])])
    const costs = await interleave<Name>(Object.fromEntries(subjects), rounds)
    const rest = { bench: 'hooks', unit: 'ns CPU', better: 'less' } as const
    const counted = (what: string, count: 1 | 10 | 100) =>
      ({
        ...rest,
        ...compared(what, costs, `ours ${count}`, `tapable ${count}`),
        anchor: "tapable's own, which counts nothing",
      }) as const
    yield {
      ...rest,
      ...compared('a hook without taps', costs, 'ours 0', 'tapable 0'),
      anchor: "tapable's empty call",
      must: 1.1,
    }
    yield counted('a hook with one asynchronous tap, counted and limited', 1)
    yield { ...counted('ten asynchronous taps, counted and limited', 10), must: 4.5 }
    const plain = compared('ten asynchronous taps, limited, not counted', costs, 'plain 10', 'tapable 10')
    yield { ...rest, ...plain, anchor: "tapable's own, which counts nothing" }
    yield counted('a hundred asynchronous taps, counted and limited', 100)
  } finally {
    for (const program of Object.values(programs)) program.disconnect()
  }
}

async function start(name: Name, flags: readonly string[]): Promise<ChildProcess> {
  const file = fileURLToPath(new URL('../peers/hooks-calls.js', import.meta.url))
  const program = fork(file, name.split(' '), { execArgv: [...flags] })
  await once(program, 'message')
  return program
}

async function cost(name: Name, program: ChildProcess): Promise<number> {
  program.send(CALLS[tapsOf(name)]!)
  const [answer] = (await once(program, 'message')) as [number]
  return answer
}
