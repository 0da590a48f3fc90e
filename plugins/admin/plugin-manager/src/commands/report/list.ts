import { ensureHome, reachServerIfAny } from '@svc/runtime'
import { systemContext, matchesPattern } from '@svc/core'
import { svcHome } from '@svc/core/config'
import type { NodeRevision } from '../../installed.ts'
import type { LockedPlugin } from '../../set.ts'
import { startInnerHost, findSettings, setHome } from '@svc/cli/program'
import { lockedFacts } from '../change/proposal-text.ts'
import { idleOf } from './plugin-state.ts'
import { isCurated } from '../../plugin-states.ts'
import { countOf, type LoadedPlugins, originOf, type PluginTree, treeText } from './tree-text.ts'

interface ShowOptions {
  readonly port?: number | undefined
  readonly config?: string | undefined
  readonly json: boolean
}

export interface ListOptions extends ShowOptions {
  /** Include plugins that come with svc. */
  readonly all: boolean
  /** Only plugins with these names: parts of names, or patterns with `*`. Empty: all. */
  readonly names: readonly string[]
}

/** `svc plugins`: prints the tree; resolves with the exit code, 1 if a plugin failed. */
export async function showPlugins(asked: ShowOptions): Promise<number> {
  const found = await find(asked)
  print(asked, { ...found, orders: ordersOf(found) })
  return codeFor(found)
}

/**
 * `svc plugins list`: prints installed, configured and failed plugins with origin and state. Resolves with the exit code, 1 if
 * a plugin failed or no plugin matches.
 */
export async function listPlugins(asked: ListOptions): Promise<number> {
  const { asTheyAre } = await import('./plugin-state.ts')
  const found = await find(asked, asTheyAre)
  const installed = await installedPlugins()
  const disabled = installed.filter(installedPlugin => !installedPlugin.enabled)
  const idle = await idleOf(installed, [...found.plugins, ...found.leftOut], asked.config)
  const inCluster = await revisionHere()
  const whole = { ...found, orders: ordersOf(found), installed, disabled, idle, ...(inCluster ? { inCluster } : {}) }
  const tree = withNames(whole, asked.names)
  const isNone = asked.names.length > 0 && countOf(tree) === 0
  if (isNone) process.stderr.write(`no plugin is called like ${asked.names.map(name => `"${name}"`).join(' or ')}\n`)
  // --json and names include the plugins of svc
  if (asked.json || !isNone) print(asked, asked.json || asked.all || asked.names.length > 0 ? tree : withoutOwn(tree))
  return isNone ? 1 : codeFor(asked.names.length > 0 ? tree : found)
}

const find = async (asked: ShowOptions, live?: Live): Promise<LoadedPlugins> =>
  (asked.config === undefined ? await ofServer(asked, live) : undefined) ?? (await ofHost(asked.config))

const print = ({ json }: ShowOptions, tree: PluginTree) =>
  void process.stdout.write(`${json ? JSON.stringify(wire(tree), null, 2) : treeText(tree)}\n`)

const codeFor = ({ plugins }: Pick<LoadedPlugins, 'plugins'>) => (plugins.some(plugin => plugin.state === 'failed') ? 1 : 0)

const ordersOf = ({ plugins }: LoadedPlugins) => new Map(plugins.map((plugin, at) => [plugin, at + 1]))

function withNames(tree: PluginTree, names: readonly string[]): PluginTree {
  if (names.length === 0) return tree
  const isMeant = ({ name }: { readonly name: string }) => names.some(item => fits(item, name))
  const { plugins, leftOut, disabled = [], idle = [] } = tree
  return {
    ...tree,
    plugins: plugins.filter(isMeant),
    leftOut: leftOut.filter(isMeant),
    disabled: disabled.filter(isMeant),
    idle: idle.filter(item => isMeant(item.locked)),
  }
}

const fits = (asked: string, name: string) => (asked.includes('*') ? matchesPattern(asked, name) : name.includes(asked))

/** Of the many plugins of svc, shows only failed ones. */
function withoutOwn(tree: PluginTree): PluginTree {
  const { plugins, leftOut } = tree
  return {
    ...tree,
    plugins: plugins.filter(plugin => !isCurated(plugin.name) || plugin.state !== 'running'),
    leftOut: leftOut.filter(item => !isCurated(item.name)),
    whole: plugins.length + leftOut.length,
  }
}

const ASK_MS = 10_000

type Live = typeof import('./plugin-state.ts').asTheyAre

async function ofServer({ port }: ShowOptions, live: Live | undefined): Promise<LoadedPlugins | undefined> {
  using server = await reachServerIfAny(svcHome(), { port })
  if (server === undefined) return undefined
  const { plugins, version } = await server.control.report(systemContext(AbortSignal.timeout(ASK_MS)))
  const reported = live ? await live(plugins, server) : { plugins }
  return { from: `the running server at ${server.info.url} (process ${server.info.pid})`, version, leftOut: [], ...reported }
}

async function ofHost(config: string | undefined): Promise<LoadedPlugins> {
  const found = await findSettings(config === undefined ? {} : { config })
  await using inner = await startInnerHost(found, ensureHome())
  const { plugins, version } = inner.host.report()
  const versions = new Map(inner.plan.loaded.map(item => [item.name, item.found.version]))
  const leftOut = inner.plan.loaded.filter(item => inner.leftOut.has(item.name))
  return {
    from: `the configuration, started in this process without plugins that listen${config === undefined ? ' (no server runs)' : ''}`,
    version,
    // plugins of the command line are in no configuration
    plugins: plugins.flatMap(plugin => {
      const version = versions.get(plugin.name)
      return version === undefined ? [] : [{ ...plugin, version }]
    }),
    leftOut: leftOut.map(item => ({ name: item.name, version: item.found.version, kind: item.found.manifest.kind })),
  }
}

/** The installed plugins in the lock. */
async function installedPlugins(): Promise<readonly LockedPlugin[]> {
  const { readLock } = await import('../../set.ts')
  return (await readLock(setHome())).plugins
}

/** The revision of the plugins of the cluster that this home has, if it is a node of one. */
async function revisionHere(): Promise<NodeRevision | undefined> {
  const { readNodeRevision } = await import('../../installed.ts')
  const found = readNodeRevision(setHome())
  return found.revision > 0 || found.failed ? found : undefined
}

const wire = ({ from, version, plugins, leftOut, installed, disabled = [], idle = [], orders, asOf, inCluster }: PluginTree) => ({
  from,
  version,
  ...(inCluster ? { revision: inCluster.revision, failed_revision: inCluster.failed ?? null } : {}),
  ...(asOf === undefined ? {} : { processes_as_of: asOf }),
  plugins: plugins.map(item => {
    const { setupMs, ...plugin } = item
    return {
      order: orders.get(item),
      ...plugin,
      setup_ms: Number(setupMs.toFixed(1)),
      ...(installed ? { origin: originOf(plugin.name, installed), health: plugin.state } : {}),
    }
  }),
  left_out: leftOut,
  ...(installed
    ? {
        disabled: disabled.map(item => ({ ...lockedFacts(item), health: 'disabled' })),
        idle: idle.map(({ locked, health, hint }) => ({ ...lockedFacts(locked), health, hint })),
      }
    : {}),
})
