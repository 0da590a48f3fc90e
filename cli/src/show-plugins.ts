import { reachServer, ensureHome } from '@svc/core/processes'
import { styleText } from 'node:util'
import { codeOf, type PluginReport, systemUse } from '@svc/core'
import { svcHome } from '@svc/core/config'
import { startInnerHost } from './inner-host.ts'
import { findSettings } from './settings.ts'
import { milliseconds } from './text.ts'

interface Asked {
  readonly port?: number | undefined
  readonly config?: string | undefined
  readonly json: boolean
}

/** Plugins in start order, and what was looked at. */
interface PluginTree {
  readonly from: string
  readonly version: string
  readonly plugins: readonly PluginReport[]
  /** Loaded, but not started here. */
  readonly leftOut: readonly { readonly name: string; readonly version: string; readonly kind: string }[]
}

/** `svc plugins`: prints the tree; resolves with the exit code, 1 when a plugin failed. */
export async function showPlugins(asked: Asked): Promise<number> {
  const tree = (asked.config === undefined ? await ofServer(asked.port) : undefined) ?? (await ofHost(asked.config))
  process.stdout.write(`${asked.json ? JSON.stringify(wire(tree), null, 2) : treeText(tree)}\n`)
  return tree.plugins.some(plugin => plugin.state === 'failed') ? 1 : 0
}

const ASK_MS = 10_000

async function ofServer(port: number | undefined): Promise<PluginTree | undefined> {
  try {
    using server = await reachServer(svcHome(), { port })
    const { plugins, version } = await server.control.report(systemUse(AbortSignal.timeout(ASK_MS)))
    return { from: `the running server at ${server.info.url} (process ${server.info.pid})`, version, plugins, leftOut: [] }
  } catch (error) {
    if (codeOf(error) === 'SERVER_NONE' && port === undefined) return undefined
    throw error
  }
}

async function ofHost(config: string | undefined): Promise<PluginTree> {
  const found = await findSettings(config === undefined ? {} : { config })
  await using inner = await startInnerHost(found, ensureHome())
  const { plugins, version } = inner.host.report()
  const versions = new Map(inner.plan.loaded.map(one => [one.name, one.found.version]))
  const leftOut = inner.plan.loaded.filter(one => inner.leftOut.has(one.name))
  return {
    from: `the configuration, started in this process without what listens${config === undefined ? ' (no server runs)' : ''}`,
    version,
    plugins: plugins.map(plugin => ({ ...plugin, version: versions.get(plugin.name) ?? plugin.version })),
    leftOut: leftOut.map(one => ({ name: one.name, version: one.found.version, kind: one.found.manifest.kind })),
  }
}

const wire = ({ from, version, plugins, leftOut }: PluginTree) => ({
  from,
  version,
  plugins: plugins.map(({ setupMs, ...plugin }, at) => ({ order: at + 1, ...plugin, setup_ms: Number(setupMs.toFixed(1)) })),
  left_out: leftOut,
})

function treeText({ from, version, plugins, leftOut }: PluginTree): string {
  const head = `svc ${version}: ${plugins.length + leftOut.length} plugins of ${from}`
  const blocks = plugins.map((plugin, at) =>
    branch(nameLine(plugin, at + 1), factsOf(plugin), at === plugins.length - 1 && leftOut.length === 0)
  )
  const rest = leftOut.map((one, at) =>
    branch(`${one.name} ${dim(`${one.version} ${one.kind}`)} not started here`, [], at === leftOut.length - 1)
  )
  return [head, ...blocks, ...rest].join('\n')
}

const dim = (text: string) => styleText('gray', text, { stream: process.stdout })
const bold = (text: string) => styleText('bold', text, { stream: process.stdout })

function nameLine({ name, instance, version, kind, setupMs, optional, state }: PluginReport, order: number): string {
  const marks = [
    version,
    kind,
    milliseconds(setupMs),
    ...(optional ? ['optional'] : []),
    ...(state === 'failed' ? ['FAILED'] : []),
  ]
  return `${order} ${bold(instance === undefined ? name : `${name} (${instance})`)} ${dim(marks.join('  '))}`
}

function factsOf({ provides, requires, added, absent = {}, permissions, error }: PluginReport): string[] {
  const lists = (word: string, record: Readonly<Record<string, readonly string[]>>) =>
    Object.entries(record).map(([key, names]) => `${word} ${key}: ${names.join(', ')}`)
  return [
    ...(error ? [`failed    ${error.code}: ${error.message}`] : []),
    ...(provides ? [`provides  ${provides}`] : []),
    ...(requires.length > 0 ? [`requires  ${requires.join(', ')}`] : []),
    ...lists('added    ', added),
    ...lists('declared, but not added:', absent),
    ...lists('may      ', permissions),
  ]
}

function branch(head: string, facts: readonly string[], last: boolean): string {
  const lines = facts.map((fact, at) => `${last ? '   ' : '│  '}${at === facts.length - 1 ? '└─' : '├─'} ${fact}`)
  return [`${last ? '└─' : '├─'} ${head}`, ...lines].join('\n')
}
