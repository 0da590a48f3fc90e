import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { middle } from './load.ts'
import type { Options } from './options.ts'
import { freePort, launch, type Program } from './processes.ts'
import type { Figure } from './report.ts'
import { start } from './server.ts'
import { scratch, svcServe } from './svc.ts'

const [COUNT, TIMES] = [6, 5]
/** Milliseconds on an idle machine. */
const MOST_MS = 3_000

/** Time of `svc plugins install` of six folders without dependencies, and of the start of a server with these sandboxed plugins. */
export async function* pluginInstall({ svc }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  const names = Array.from({ length: COUNT }, (_, at) => `plugin-${at}`)
  for (const [at, name] of names.entries()) writePlugin(join(folder.path, name), at)
  const home = join(folder.path, 'home')
  const args = [...svc, 'plugins', 'install', ...names.map(name => `./${name}`), '--yes', '--json']
  const install: Program = { args, cwd: folder.path, env: { SVC_HOME: home } }
  const [installs, starts] = [[] as number[], [] as number[]]
  for (let round = 0; round < TIMES; round++) {
    rmSync(home, { recursive: true, force: true })
    mkdirSync(home)
    installs.push(await runOnce(install))
    const port = await freePort()
    await using server = await start(svcServe(svc, port, folder.path), port)
    starts.push(server.startMs)
  }
  yield figureOf(`svc plugins install, ${COUNT} sandboxed plugins`, installs)
  yield figureOf(`first good /health with ${COUNT} sandboxed plugins`, starts)
}

const figureOf = (what: string, times: readonly number[]): Figure => ({
  bench: 'plugin-install',
  what,
  value: middle(times),
  unit: 'ms',
  anchor: 'what it may take',
  anchorValue: MOST_MS,
  ratio: middle(times) / MOST_MS,
  better: 'less',
  must: 1,
})

async function runOnce(program: Program): Promise<number> {
  const began = performance.now()
  const child = launch(program)
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with ${code}`)
  return performance.now() - began
}

function writePlugin(folder: string, at: number) {
  mkdirSync(folder)
  const svc = { api: 1, kind: 'tool', contributes: { tools: [`tool_${at}`] }, permissions: {} }
  const manifest = { name: `svc-plugin-bench-${at}`, version: '1.0.0', type: 'module', exports: { '.': './index.js' }, svc }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(folder, 'index.js'), codeOf(at))
}

const codeOf = (at: number) => `import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const call = async () => ({ content: [{ type: 'text', text: 'done' }] })
const tool = { description: 'Does it', category: 'bench', effects: [], parameters: { type: 'object', properties: {} }, call }
export default definePlugin({ setup: scope => void scope.add(Tools, 'tool_${at}', tool) })
`
