import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Options } from './options.ts'
import type { Figure } from './report.ts'
import { compared } from './compare.ts'
import { interleave, type Subject } from './rounds.ts'
import { scratch } from './svc.ts'
import { type Engine, type Load, startEngine } from './workflows-engine.ts'

const bench = 'workflows'
const UNIT = 'steps/s'
/** Warm-up loads, until the code of each engine is compiled. */
const WARM: Load = { kind: 'sequence', at: 64, ms: 4_000 }
const SEQUENCE = { kind: 'sequence', at: 1 } as const
const MANY = { kind: 'sequence', at: 64 } as const
const PARALLEL = { kind: 'parallel', at: 1 } as const
const [FEW_RUNS, MANY_RUNS] = [100, 100_000]

/** Runs of ten empty steps: the cost of the engine, with and without a disk, compared to functions by hand and other engines. */
export async function* workflows(options: Options): AsyncGenerator<Figure> {
  yield* durable(options)
  yield* inMemory(options)
  yield* stored(options)
}

type Named = Readonly<Record<'ours' | 'functions' | 'langgraph' | 'mastra', Engine>>

async function* durable({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const engines: Named = {
    ours: await startEngine('workflows-svc', [folder.path, 'sqlite'], svc),
    functions: await startEngine('workflows-functions', [join(folder.path, 'functions.db')]),
    langgraph: await startEngine('workflows-langgraph', [join(folder.path, 'langgraph.db')]),
    mastra: await startEngine('workflows-mastra', [join(folder.path, 'mastra.db')]),
  }
  try {
    await warmUp(engines)
    const { ours, functions, langgraph, mastra } = engines
    const found = await rates({ ours, functions: as(functions, 'each'), langgraph, mastra }, { ...SEQUENCE, ms }, rounds)
    const what = 'durable steps, one run'
    yield { ...compared(what, found, 'ours', 'functions'), ...more('functions with a commit a step'), must: 0.7, aim: 0.9 }
    yield* peers(what, found)
    const many = await rates(engines, { ...MANY, ms }, rounds)
    const at64 = 'durable steps, 64 runs'
    yield { ...compared(at64, many, 'ours', 'functions'), ...more('functions with group commit'), must: 0.3, aim: 0.5 }
    yield* peers(at64, many, { langgraph: 8, mastra: 10 })
    const wide = await rates(engines, { ...PARALLEL, ms }, rounds)
    const at10 = 'durable steps, ten at once in one run'
    yield { ...compared(at10, wide, 'ours', 'functions'), ...more('functions with group commit'), must: 0.25, aim: 0.4 }
    yield* peers(at10, wide)
  } finally {
    for (const engine of Object.values(engines)) await engine.end()
  }
}

async function* inMemory({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  const engines = {
    ours: await startEngine('workflows-svc', ['', 'memory'], svc),
    langgraph: await startEngine('workflows-langgraph', []),
    mastra: await startEngine('workflows-mastra', []),
  }
  try {
    await warmUp(engines)
    for (const [what, load] of [
      ['steps in memory, one run', SEQUENCE],
      ['steps in memory, ten at once in one run', PARALLEL],
    ] as const)
      yield* peers(what, await rates(engines, { ...load, ms }, rounds), { mastra: 1.5 })
  } finally {
    for (const engine of Object.values(engines)) await engine.end()
  }
}

/** The cost of a run with few and with many completed runs. */
async function* stored({ svc, rounds, ms }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const among = async (count: number) => {
    const path = join(folder.path, String(count))
    mkdirSync(path)
    const engine = await startEngine('workflows-svc', [path, 'sqlite'], svc)
    await engine.fill(count)
    return engine
  }
  const engines = { few: await among(FEW_RUNS), many: await among(MANY_RUNS) }
  try {
    await warmUp(engines)
    const costs = { few: [] as number[], many: [] as number[] }
    const subject = (name: 'few' | 'many') => async () => {
      const { cpu, stepsPerSecond } = await engines[name].run({ ...MANY, ms })
      costs[name].push(cpu)
      return 1_000_000 / stepsPerSecond
    }
    const times = await interleave({ few: subject('few'), many: subject('many') }, rounds)
    const what = `a step among ${MANY_RUNS} stored runs, 64 runs`
    const about = { bench, anchor: `among ${FEW_RUNS}`, better: 'less', must: 1.2 } as const
    yield { ...compared(what, times, 'many', 'few'), ...about, unit: 'µs' }
    yield { ...compared(what, costs, 'many', 'few'), ...about, unit: 'µs CPU' }
  } finally {
    for (const engine of Object.values(engines)) await engine.end()
  }
}

type Peer = 'langgraph' | 'mastra'
const PEERS = { langgraph: 'LangGraph.js', mastra: 'Mastra' } as const

function* peers(
  what: string,
  figures: Readonly<Record<'ours' | Peer, readonly number[]>>,
  musts: Partial<Record<Peer, number>> = {}
): Generator<Figure> {
  for (const peer of ['langgraph', 'mastra'] as const) {
    const must = musts[peer]
    yield { ...compared(what, figures, 'ours', peer), ...more(PEERS[peer]), ...(must === undefined ? {} : { must }) }
  }
}

const more = (anchor: string) => ({ bench, unit: UNIT, anchor, better: 'more' }) as const

const as = ({ run, ...rest }: Engine, kind: Load['kind']): Engine => ({ ...rest, run: load => run({ ...load, kind }) })

async function warmUp(engines: Readonly<Record<string, Engine>>): Promise<void> {
  for (const engine of Object.values(engines)) for (const load of [WARM, { ...PARALLEL, ms: 2_000 }]) await engine.run(load)
}

function rates<N extends string>(engines: Readonly<Record<N, Engine>>, load: Load, rounds: number) {
  const subjects = Object.fromEntries(
    Object.entries<Engine>(engines).map(([name, engine]) => [name, async () => (await engine.run(load)).stepsPerSecond])
  )
  return interleave(subjects as Record<N, Subject>, rounds)
}
