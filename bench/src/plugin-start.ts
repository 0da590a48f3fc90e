import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { middle } from './load.ts'
import type { Options } from './options.ts'
import { pluginReload } from './plugin-reload.ts'
import { freePort, residentOf } from './processes.ts'
import type { Figure } from './report.ts'
import { interleave, ratioOf } from './rounds.ts'
import { start } from './server.ts'
import { scratch, svcServe } from './svc.ts'

const STARTS = 10
const COUNTS = ['0', '1', '10', '100'] as const
type Count = (typeof COUNTS)[number]
const MUST: Readonly<Record<Count, number>> = { 0: 1, 1: 1.1, 10: 1.2, 100: 1.6 }
/** Long enough for lazy loading after the start. */
const SETTLE_MS = 1_000
const MOST_MIB = 0.3

/**
 * Time from the start of `svc serve` to the first good `/health` with additional plugins, and the memory of each in an idle
 * worker.
 */
export async function* pluginStart({ svc, rounds }: Options): AsyncGenerator<Figure> {
  using folder = scratch()
  for (let at = 0; at < 100; at++) writePlugin(join(folder.path, `plugin-${at}`), at)
  const resident = Object.fromEntries(COUNTS.map(count => [count, [] as number[]])) as Record<Count, number[]>
  const subjects = Object.fromEntries(COUNTS.map(count => [count, () => startWith(svc, folder.path, count, resident[count])]))
  await interleave(subjects as Record<Count, () => Promise<number>>, 2)
  for (const count of COUNTS) resident[count].length = 0
  const figures = await interleave(subjects as Record<Count, () => Promise<number>>, Math.max(rounds, STARTS))
  const base = { bench: 'plugins', unit: 'ms', anchor: 'none', anchorValue: middle(figures[0]), better: 'less' } as const
  for (const count of COUNTS.slice(1)) {
    const what = `first good /health with ${count} more plugin${count === '1' ? '' : 's'}`
    yield { ...base, what, value: middle(figures[count]), ratio: ratioOf(figures[count], figures[0]), must: MUST[count] }
  }
  yield memoryOf(resident)
  yield* pluginReload(svc, folder.path, rounds)
}

function memoryOf(resident: Record<Count, number[]>): Figure {
  const [none, hundred] = [middle(resident[0]), middle(resident[100])]
  const each = (hundred - none) / 100
  const what = 'memory of a plugin, an idle worker with 100 of them'
  const rest = { bench: 'plugins', unit: 'MiB', anchor: 'what one may take', better: 'less' } as const
  return { ...rest, what, value: each, anchorValue: MOST_MIB, ratio: each / MOST_MIB, must: 1 }
}

async function startWith(svc: readonly string[], folder: string, count: Count, resident: number[]): Promise<number> {
  const port = await freePort()
  const project = join(folder, `with-${count}`)
  mkdirSync(project, { recursive: true })
  const plugins = Array.from({ length: Number(count) }, (_, at) => `../plugin-${at}`)
  await using server = await start(svcServe(svc, port, project, { plugins }), port)
  const { startMs } = server
  await wait(SETTLE_MS)
  resident.push(residentOf(server.pids.at(-1)!))
  return startMs
}

/** A typical third-party package: a tool with an unset configuration section. */
function writePlugin(folder: string, at: number) {
  mkdirSync(folder)
  const svc = { api: 1, kind: 'tool', contributes: { tools: [`tool_${at}`] }, permissions: {} }
  const manifest = { name: `svc-plugin-bench-${at}`, version: '1.0.0', type: 'module', exports: { '.': './index.js' }, svc }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(folder, 'index.js'), codeOf(at))
}

const codeOf = (at: number) => `import { definePlugin, schema } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const config = schema({
  type: 'object',
  additionalProperties: false,
  properties: { unit: { enum: ['C', 'F'], default: 'C' }, places: { type: 'array', items: { type: 'string' } } },
})
const parameters = { type: 'object', properties: { place: { type: 'string' } }, required: ['place'], additionalProperties: false }

export default definePlugin({
  section: 'tools.bench_${at}',
  config,
  setup(scope) {
    scope.add(Tools, 'tool_${at}', {
      description: 'Tells the weather of a place.',
      category: 'weather',
      effects: ['read'],
      parameters,
      call: async ({ place }) => ({ content: [{ type: 'text', text: \`fine in \${place}\` }] }),
    })
  },
})
`
