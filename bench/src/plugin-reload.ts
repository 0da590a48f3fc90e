import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, requestFor } from './client.ts'
import { middle } from './load.ts'
import { freePort } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'
import { type Server, start } from './server.ts'
import { svcServe } from './svc.ts'

/** A worker that has served this long is replaced at once, and has finished its work after the start. */
const STABLE_MS = 5_200
const PATIENCE_MS = 30_000
const PAUSE_MS = 10
/** More consecutive responses than there are workers during a change. */
const ROW = 4

/**
 * Time from a saved file to responses of only new code in `svc plugins dev`, and from the death of a worker to the next
 * response.
 */
export async function* pluginReload(svc: readonly string[], folder: string, rounds: number): AsyncGenerator<Figure> {
  const project = join(folder, 'dev')
  const plugin = join(project, 'svc-plugin-bench-dev')
  mkdirSync(plugin, { recursive: true })
  writeFileSync(join(plugin, 'package.json'), JSON.stringify(MANIFEST))
  writeFileSync(join(plugin, 'index.js'), codeOf('version_0'))
  const port = await freePort()
  const { args, ...place } = svcServe(svc, port, project, {})
  const dev = [...args.slice(0, svc.length), 'plugins', 'dev', plugin, '--port', String(port)]
  await using server = await start({ ...place, args: dev }, port)
  let saved = 0
  const subjects = { save: () => save(port, plugin, ++saved), death: () => death(server, `version_${saved}`) }
  await interleave(subjects, 1)
  const figures = await interleave(subjects, rounds)
  const [value, anchorValue] = [middle(figures.save), middle(figures.death)]
  const rest = {
    bench: 'plugins',
    unit: 'ms',
    anchor: 'start of a worker in place of a dead one',
    better: 'less',
    must: 1.5,
  } as const
  yield {
    ...rest,
    what: 'svc plugins dev: a saved file until it answers',
    value,
    anchorValue,
    ratio: ratioOf(figures.save, figures.death),
  }
}

async function save(port: number, plugin: string, version: number): Promise<number> {
  await wait(STABLE_MS)
  const began = performance.now()
  writeFileSync(join(plugin, 'index.js'), codeOf(`version_${version}`))
  await untilReported(port, `version_${version}`, began)
  return performance.now() - began
}

async function death(server: Server, version: string): Promise<number> {
  await wait(STABLE_MS)
  const worker = server.pids.at(-1)!
  const began = performance.now()
  process.kill(worker, 'SIGKILL')
  await untilReported(server.port, version, began)
  return performance.now() - began
}

/** Until no other worker responds: connections are dealt out in turn. */
async function untilReported(port: number, version: string, began: number): Promise<void> {
  for (let inRow = 0; performance.now() < began + PATIENCE_MS; await wait(PAUSE_MS)) {
    inRow = (await toldBy(port)).includes(version) ? inRow + 1 : 0
    if (inRow === ROW) return
  }
  throw new Error(`${version} was not served within ${PATIENCE_MS} ms`)
}

async function toldBy(port: number): Promise<string> {
  try {
    const connection = await connect(port)
    const { body } = await connection.ask(requestFor('GET', '/version'), true)
    connection.close()
    return body
  } catch {
    return '' // no server listens at the moment
  }
}

const MANIFEST = {
  name: 'svc-plugin-bench-dev',
  version: '1.0.0',
  type: 'module',
  exports: { '.': './index.js' },
  svc: { api: 1, kind: 'routes', contributes: { routes: { version: { method: 'GET', path: '/version', scope: 'read' } } } },
}

/** The cheapest route that shows which code responds: work of the old worker takes processor time from the new one. */
const codeOf = (version: string) => `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'

const handle = async () => ({ body: { version: '${version}' } })
export default definePlugin({
  setup(scope) {
    scope.add(Routes, 'version', { method: 'GET', path: '/version', summary: 'The version', scope: 'read', handle })
  },
})
`
