import { hash } from 'node:crypto'
import { type HostReport, isTree, leaves, maskedValue } from '@svc/core'
import type { Json, NodeDifference, NodePluginSet } from '@svc/core/contracts'

// What a node runs, to compare it with the other nodes of its cluster.

/** Names with their versions, or keys with the digest of their value. */
type Versions = Readonly<Record<string, string>>

/** What all nodes of a cluster should have in common. */
export interface NodeSetup {
  readonly plugins: Versions
  /** The keys that are set. Secrets are not part of the digests. */
  readonly configuration: Versions
}

/** What a worker publishes about itself on the bus. */
export interface WorkerFacts {
  readonly version: string
  readonly host: string
  readonly roles: readonly string[]
  /** The hash of its setup. */
  readonly setup: string
  /** The versions of the spaces of the store when it started. */
  readonly spaces: Versions
}

/** What differs between the machines of a cluster. */
const OF_THE_MACHINE = [
  'cluster.roles',
  'host',
  'log',
  'server.host',
  'server.port',
  'server.ssl',
  'server.workers',
  'store.path',
]

const isOfTheMachine = (key: string) => OF_THE_MACHINE.some(local => key === local || key.startsWith(`${local}.`))

/** The setup of a host with this configuration. */
export function setupOf({ plugins }: Pick<HostReport, 'plugins'>, configuration: unknown): NodeSetup {
  const values = leaves(configuration).map(([keys, value]) => [keys.join('.'), maskedValue(keys, value)] as const)
  return {
    plugins: sorted(plugins.filter(({ state }) => state !== 'failed').map(({ name, version }) => [name, version])),
    configuration: sorted(
      values
        .filter(([key]) => key !== '' && !isOfTheMachine(key))
        .map(([key, value]) => [key, digest(JSON.stringify(value) ?? '')])
    ),
  }
}

const sorted = (entries: readonly (readonly [string, string])[]): Versions =>
  Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)))

const digest = (text: string) => hash('sha256', text, 'hex').slice(0, 16)

export const hashOf = (setup: NodeSetup): string => digest(JSON.stringify(setup))

/** What the other node runs differently. */
export const differencesOf = (own: NodeSetup, other: NodeSetup): NodeDifference[] => [
  ...compare('plugin', own.plugins, other.plugins),
  // a digest helps no reader
  ...compare('configuration', own.configuration, other.configuration).map(({ what, name }) => ({
    what,
    name,
    here: undefined,
    there: undefined,
  })),
]

function compare(what: NodeDifference['what'], own: Versions, other: Versions): NodeDifference[] {
  const names = [...new Set([...Object.keys(own), ...Object.keys(other)])].sort()
  return names.map(name => ({ what, name, here: own[name], there: other[name] })).filter(({ here, there }) => here !== there)
}

/** The spaces that both have in different versions. A space that only one has opened is no difference. */
export const schemaDifferences = (own: Versions, other: Versions): NodeDifference[] =>
  compare('schema', own, other).filter(({ here, there }) => here !== undefined && there !== undefined)

/** A revision that the other node has not, or could not take over. */
export function pluginSetDifferences(own: NodePluginSet, other: NodePluginSet): NodeDifference[] {
  if (own.revision === other.revision && !other.failed) return []
  return [{ what: 'plugin_set', name: 'revision', here: revisionText(own), there: revisionText(other) }]
}

const revisionText = ({ revision, failed }: NodePluginSet) =>
  failed ? `${revision}, because revision ${failed.revision} failed: ${failed.code} ${failed.message}` : String(revision)

/** The installed plugins that another worker has sent. */
export function pluginSetIn(sent: unknown): NodePluginSet | undefined {
  if (!isTree(sent)) return undefined
  const { revision, failed } = sent as Readonly<Record<string, unknown>>
  const { revision: newer, code, message } = Object(failed) as Readonly<Record<string, unknown>>
  return {
    revision: Number(revision) || 0,
    ...(isTree(failed) ? { failed: { revision: Number(newer) || 0, code: String(code), message: String(message) } } : {}),
  }
}

/** The facts of a member, as far as it has published them: it can run another version. */
export function factsIn(facts: Json): Partial<WorkerFacts> {
  if (!isTree(facts)) return {}
  const { version, host, roles, setup, spaces } = facts as Readonly<Record<string, unknown>>
  return {
    ...(typeof version === 'string' ? { version } : {}),
    ...(typeof host === 'string' ? { host } : {}),
    ...(Array.isArray(roles) ? { roles: roles.map(String) } : {}),
    ...(typeof setup === 'string' ? { setup } : {}),
    ...(isTree(spaces) ? { spaces: versionsIn(spaces) } : {}),
  }
}

/** A setup that another worker has sent. */
export const setupIn = (sent: unknown): NodeSetup => ({
  plugins: versionsIn(Object(sent).plugins),
  configuration: versionsIn(Object(sent).configuration),
})

const versionsIn = (sent: unknown): Versions =>
  Object.fromEntries(Object.entries(Object(sent) as object).map(([name, version]) => [name, String(version)]))

/** A difference for a log line. */
export function textOf({ what, name, here, there }: NodeDifference): string {
  if (what === 'configuration') return `configuration ${name}`
  if (there === undefined) return `${what} ${name} is only here`
  return here === undefined
    ? `${what} ${name} is only there`
    : `${what} ${name} ${there || '(no version)'}, here ${here || '(no version)'}`
}
