import { once } from 'node:events'
import { middle } from './load.ts'
import type { Options } from './options.ts'
import { launch, type Program } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'
import { peer, scratch } from './svc.ts'

const TIMES = 15

/** `svc --help` against the help of oclif's own hello world. */
export async function* help({ svc, rounds }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const ours: Program = { args: [...svc, '--help'], cwd: folder.path, env: { SVC_HOME: `${folder.path}/home` } }
  const oclif: Program = { ...peer('oclif-hello/run', '--help'), cwd: folder.path }
  const subjects = { ours: () => runOnce(ours), oclif: () => runOnce(oclif) }
  await interleave(subjects, 3)
  const figures = await interleave(subjects, Math.max(rounds, TIMES))
  yield {
    bench: 'help',
    what: 'svc --help',
    value: middle(figures.ours),
    unit: 'ms',
    anchor: "oclif's hello world",
    anchorValue: middle(figures.oclif),
    ratio: ratioOf(figures.ours, figures.oclif),
    better: 'less',
    must: 1,
    aim: 0.5,
  }
}

async function runOnce(program: Program): Promise<number> {
  const began = performance.now()
  const child = launch(program)
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with ${code}`)
  return performance.now() - began
}
