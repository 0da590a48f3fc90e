import { type Config, type HostOptions, type Plan, planHost, type RunningHost, StartFailed, startHost } from '@svc/core'
import { knownNodeId } from '@svc/runtime'
import { protectedPathsOf } from '@svc/runtime/plugin-paths'
import { hostOptions, programOf } from './host-options.ts'
import { redactOutput } from './redact-output.ts'

type Loaded = Plan['loaded'][number]

/** A host inside a command: all plugins except those that listen. */
export interface InnerHost extends AsyncDisposable {
  readonly host: RunningHost
  readonly plan: Plan
  /** Names of the plugins that were not started. */
  readonly leftOut: ReadonlySet<string>
}

/** Which plugins start in a command. */
interface InnerHostOptions {
  /** Sections whose owners start although they are surfaces. */
  readonly kept?: readonly string[]
  /** The services that are needed: other plugins do not start. */
  readonly only?: readonly string[]
}

/**
 * Starts the configured plugins in this process, except surfaces and plugins that need one. Throws START_FAILED with every
 * problem.
 */
export async function startInnerHost(
  config: Config,
  home: string,
  log?: HostOptions['log'],
  { kept = [], only }: InnerHostOptions = {}
): Promise<InnerHost> {
  redactOutput()
  const options = hostOptions(config, home)
  const plan = await planHost(options)
  if (plan.problems.length > 0) throw new StartFailed(plan.problems)
  const out = only ? allBut(plan.loaded, only) : withoutSurface(plan.loaded, kept)
  const plugins = plan.loaded.filter(item => !out.has(item.name)).map(refOf)
  // the plan has checked the manifests against the slots and commands of all plugins
  const { slots: _slots, commands: _commands, ...same } = options
  const nodeId = knownNodeId(home)
  const host = await startHost({
    ...same,
    ...(nodeId === undefined ? {} : { nodeId }),
    plugins: [...plugins, protectedPathsOf(programOf(config, home))],
    reserved: openSections(config, plan.loaded, out),
    ...(log ? { log } : {}),
  })
  return { host, plan, leftOut: out, [Symbol.asyncDispose]: () => host.close() }
}

const refOf = ({ name, plugin, found }: Loaded) => ({
  use: plugin,
  name,
  optional: found.optional,
  permissions: found.permissions,
  ...(found.declared ? { manifest: found.manifest } : {}),
})

/** Sections without an owner here, also those within a section of another plugin. The plan has checked their keys. */
function openSections(config: Config, loaded: readonly Loaded[], out: ReadonlySet<string>) {
  const sections = Object.keys(config.value).filter(section => section !== 'host' && section !== 'log')
  const missing = loaded.flatMap(({ name, plugin }) => (out.has(name) && plugin.section !== undefined ? [plugin.section] : []))
  return [...new Set([...sections, ...missing])].map(section => ({ section, json: true }))
}

/** The plugins that none of these services needs. */
function allBut(loaded: readonly Loaded[], services: readonly string[]): Set<string> {
  const needed = new Set(services)
  const kept = new Set<Loaded>()
  // The loop also visits the items that are added to the set meanwhile.
  for (const service of needed)
    for (const item of loaded)
      if (item.plugin.provides?.name === service && !kept.has(item)) {
        kept.add(item)
        for (const token of Object.values({ ...item.plugin.requires, ...item.plugin.optional }))
          if (token.what === 'service') needed.add(token.name)
      }
  return new Set(loaded.filter(item => !kept.has(item)).map(({ name }) => name))
}

function withoutSurface(loaded: readonly Loaded[], kept: readonly string[]): Set<string> {
  const isSurface = ({ found, plugin }: Loaded) => found.manifest.kind === 'surface' && !kept.includes(plugin.section ?? '')
  const out = new Set(loaded.filter(isSurface).map(item => item.name))
  const lost = () =>
    new Set(
      loaded
        .filter(item => out.has(item.name))
        .flatMap(item => [item.plugin.provides, ...(item.plugin.alsoProvides ?? [])].flatMap(token => token?.name ?? []))
    )
  const needs = (item: Loaded, services: Set<string>) =>
    Object.values(item.plugin.requires).some(token => token.what === 'service' && services.has(token.name))
  for (let size = -1; size !== out.size; ) {
    size = out.size
    const services = lost()
    for (const item of loaded) if (needs(item, services)) out.add(item.name)
  }
  return out
}
