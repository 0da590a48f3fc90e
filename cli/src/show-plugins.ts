import { reachServer, ensureHome } from '@svc/core/processes'
import { styleText } from 'node:util'
import { codeOf, type PluginReport, systemUse } from '@svc/core'
import { svcHome } from '@svc/core/config'
import type { LockedPlugin } from '@svc/plugin-set'
import { startInnerHost } from './inner-host.ts'
import { lockedFacts } from './plugins/candidate-text.ts'
import { findSettings, setHome } from './settings.ts'
import { milliseconds } from './text.ts'

interface Asked {
  readonly port?: number | undefined
  readonly config?: string | undefined
  readonly json: boolean
  /** Where each came from as well, where it runs and how it is; and those that are switched off. */
  readonly origins?: boolean
}

/** A plugin that runs nowhere here. */
interface Resting {
  readonly name: string
  readonly version: string
  readonly kind: string
}

/** Plugins in start order, and what was looked at. */
interface PluginTree {
  readonly from: string
  readonly version: string
  readonly plugins: readonly PluginReport[]
  /** Loaded, but not started here. */
  readonly leftOut: readonly Resting[]
  /** What is installed and how each plugin came here, where that was asked for. */
  readonly installed?: readonly LockedPlugin[]
}

/** `svc plugins`: prints the tree; resolves with the exit code, 1 when a plugin failed. */
export async function showPlugins(asked: Asked): Promise<number> {
  const found = (asked.config === undefined ? await ofServer(asked) : undefined) ?? (await ofHost(asked.config))
  const tree = asked.origins === true ? { ...found, installed: await installedPlugins() } : found
  process.stdout.write(`${asked.json ? JSON.stringify(wire(tree), null, 2) : treeText(tree)}\n`)
  return tree.plugins.some(plugin => plugin.state === 'failed') ? 1 : 0
}

const ASK_MS = 10_000

async function ofServer({ port, origins }: Asked): Promise<PluginTree | undefined> {
  try {
    using server = await reachServer(svcHome(), { port })
    const { plugins, version } = await server.control.report(systemUse(AbortSignal.timeout(ASK_MS)))
    const now = origins === true ? await (await import('./plugins/live.ts')).asTheyAre(plugins, server.info) : plugins
    return { from: `the running server at ${server.info.url} (process ${server.info.pid})`, version, plugins: now, leftOut: [] }
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

/** What a person installed, as the lock has it. */
async function installedPlugins(): Promise<readonly LockedPlugin[]> {
  const { readLock } = await import('@svc/plugin-set')
  return (await readLock(setHome())).plugins
}

const wire = ({ from, version, plugins, leftOut, installed }: PluginTree) => ({
  from,
  version,
  plugins: plugins.map(({ setupMs, ...plugin }, at) => ({
    order: at + 1,
    ...plugin,
    setup_ms: Number(setupMs.toFixed(1)),
    ...(installed ? { origin: originOf(plugin.name, installed), health: plugin.state } : {}),
  })),
  left_out: leftOut,
  ...(installed ? { disabled: disabledIn(installed).map(one => ({ ...lockedFacts(one), health: 'disabled' })) } : {}),
})

const disabledIn = (installed: readonly LockedPlugin[] = []) => installed.filter(one => !one.enabled)

const CURATED = /^@svc\/plugin-/

/** `registry svc-plugin-weather@^1`, `svc`, `configuration`. */
function originOf(name: string, installed: readonly LockedPlugin[]): string {
  const locked = installed.find(one => one.name === name)
  if (locked) return `${locked.origin.kind} ${locked.origin.spec}`
  return CURATED.test(name) ? 'svc' : 'configuration'
}

function treeText({ from, version, plugins, leftOut, installed }: PluginTree): string {
  const off = disabledIn(installed)
  const count = plugins.length + leftOut.length
  const head = `svc ${version}: ${count} plugins of ${from}`
  const branches = [
    ...plugins.map((plugin, at) => [nameLine(plugin, at + 1), [...factsOf(plugin), ...originFacts(plugin, installed)]] as const),
    ...leftOut.map(one => [`${one.name} ${dim(`${one.version} ${one.kind}`)} not started here`, []] as const),
    ...off.map(one => [`${one.name} ${dim(one.version)} disabled`, [`from      ${one.origin.kind} ${one.origin.spec}`]] as const),
  ]
  return [head, ...branches.map(([name, facts], at) => branch(name, facts, at === branches.length - 1))].join('\n')
}

function originFacts(
  { name, isolation, state, restarts, refusals = {} }: PluginReport,
  installed?: readonly LockedPlugin[]
): string[] {
  if (installed === undefined) return []
  const refused = Object.entries(refusals).filter(([, count]) => count > 0)
  return [
    `from      ${originOf(name, installed)}`,
    `runs      ${isolation}`,
    `health    ${state}${restarts === undefined || restarts === 0 ? '' : `, brought up again ${restarts} times`}`,
    ...(refused.length > 0 ? [`refused   ${refused.map(([kind, count]) => `${kind} ${count}`).join(', ')}`] : []),
  ]
}

const dim = (text: string) => styleText('gray', text, { stream: process.stdout })
const bold = (text: string) => styleText('bold', text, { stream: process.stdout })

function nameLine({ name, instance, version, kind, setupMs, optional, state }: PluginReport, order: number): string {
  const marks = [
    version,
    kind,
    milliseconds(setupMs),
    ...(optional ? ['optional'] : []),
    ...(state === 'running' ? [] : [state.toUpperCase()]),
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
