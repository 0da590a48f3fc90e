import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { middle } from './load.ts'
import type { Options } from './options.ts'
import { launch, type Program } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'
import { peer, scratch } from './svc.ts'

const TIMES = 15
const CACHE = new URL('../../cli/bin/compile-cache.js', import.meta.url).href

/** `svc --help`, started as `bin/svc.js` does (with the compile cache of the svc home), against the help of oclif's own hello world with a manifest. */
export async function* help({ svc, rounds }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const home = `${folder.path}/home`
  mkdirSync(home)
  const ours: Program = { args: ['--import', CACHE, ...svc, '--help'], cwd: folder.path, env: { SVC_HOME: home } }
  const oclif: Program = { ...peer('oclif-hello/run', '--help'), cwd: folder.path }
  const subjects = { ours: () => runOnce(ours), oclif: () => runOnce(oclif) }
  await interleave(subjects, 3)
  const figures = await interleave(subjects, Math.max(rounds, TIMES))
  yield {
    bench: 'help',
    what: 'svc --help',
    value: middle(figures.ours),
    unit: 'ms',
    anchor: "oclif's hello world with a manifest",
    anchorValue: middle(figures.oclif),
    ratio: ratioOf(figures.ours, figures.oclif),
    better: 'less',
    must: 1.1,
    aim: 0.8,
  }
}

async function runOnce(program: Program): Promise<number> {
  const began = performance.now()
  const child = launch(program)
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with ${code}`)
  return performance.now() - began
}
