import { middle } from './load.ts'
import type { Options } from './options.ts'
import { freePort, type Program } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'
import { start } from './server.ts'
import { peer, scratch, svcServe } from './svc.ts'

const STARTS = 10

/** From the start of the process to the first good `/health`, the compile cache warm: supervisor and one worker against a koa hello world. */
export async function* startUp({ svc, rounds }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const programs = { ours: (port: number) => svcServe(svc, port, folder.path), koa: (port: number) => peer('koa-hello', port) }
  const subjects = { ours: () => startOnce(programs.ours), koa: () => startOnce(programs.koa) }
  await interleave(subjects, 3)
  const figures = await interleave(subjects, Math.max(rounds, STARTS))
  yield {
    bench: 'start',
    what: 'start to the first good /health',
    value: middle(figures.ours),
    unit: 'ms',
    anchor: 'koa hello world',
    anchorValue: middle(figures.koa),
    ratio: ratioOf(figures.ours, figures.koa),
    better: 'less',
    must: 3.5,
    aim: 2,
  }
}

async function startOnce(program: (port: number) => Program): Promise<number> {
  const port = await freePort()
  await using server = await start(program(port), port)
  return server.startMs
}
