import { styleText } from 'node:util'
import type { PluginReport } from '@svc/core'
import type { NodeRevision } from '../../installed.ts'
import type { LockedPlugin } from '../../set.ts'
import { milliseconds, visible } from '@svc/cli/command'
import { isCurated } from '../../plugin-states.ts'
import { valueWords } from '../change/proposal-text.ts'
import { type Idle, OUTDATED_STATE, refusedText } from './plugin-state.ts'

/** A plugin that does not run here. */
interface Resting {
  readonly name: string
  readonly version: string
  readonly kind: string
}

export interface LoadedPlugins {
  readonly from: string
  readonly version: string
  readonly plugins: readonly PluginReport[]
  /** Loaded, but not started here. */
  readonly leftOut: readonly Resting[]
  /** The time of the state of isolated plugins, if not now. */
  readonly asOf?: string
}

/** Plugins in start order, with their source. */
export interface PluginTree extends LoadedPlugins {
  /** The position of each plugin in the start order. */
  readonly orders: ReadonlyMap<PluginReport, number>
  /** The installed plugins with their origins, if requested. */
  readonly installed?: readonly LockedPlugin[]
  /** Installed and disabled. */
  readonly disabled?: readonly LockedPlugin[]
  /** Installed and enabled, but not running. */
  readonly idle?: readonly Idle[]
  /** The revision of the plugins of the cluster that this home has. */
  readonly inCluster?: NodeRevision
  /** Number of loaded plugins, if the tree does not contain all. */
  readonly whole?: number
}

/** The tree for a person. Text in it can come from plugins. */
export function treeText(tree: PluginTree): string {
  const { version, from, plugins, leftOut, whole, disabled = [], idle = [], asOf, inCluster } = tree
  const rest = whole === undefined ? 0 : whole - plugins.length - leftOut.length
  const count = countOf(tree)
  const what =
    whole === undefined || rest === 0 ? 'plugins' : `${count === 1 ? 'plugin' : 'plugins'} installed, configured or failed,`
  const branches = [
    ...plugins.map(plugin => [nameLine(plugin, tree), [...factsOf(plugin), ...originFacts(plugin, tree)]] as const),
    ...leftOut.map(item => [`${marked(item)} not started here`, []] as const),
    ...disabled.map(item => [`${marked(item)} disabled`, [`from      ${visible(originText(item))}`]] as const),
    ...idle.map(item => [`${marked(item.locked)} ${item.health}`, idleFacts(item)] as const),
    ...(rest > 0 ? [[`${rest} of svc itself  ${dim('svc plugins list --all shows them')}`, []] as const] : []),
  ]
  const old = asOf === undefined ? [] : [`isolated plugins as of ${asOf}: ${OUTDATED_STATE}`]
  return [
    `svc ${version}: ${count} ${what} of ${from}`,
    ...(inCluster ? revisionLines(inCluster) : []),
    ...old,
    ...branches.map(([name, facts], at) => branch(name, facts, at === branches.length - 1)),
  ].join('\n')
}

const revisionLines = ({ revision, failed }: NodeRevision) => [
  revision === 0 ? 'no revision of the plugins of the cluster' : `revision ${revision} of the plugins of the cluster`,
  ...(failed ? [visible(`revision ${failed.revision} failed: ${failed.code}  ${failed.message}`)] : []),
]

/** Number of plugins in the tree. */
export const countOf = ({ plugins, leftOut, disabled = [], idle = [] }: PluginTree): number =>
  plugins.length + leftOut.length + disabled.length + idle.length

/** The origin of a plugin: `registry svc-plugin-weather@^1`, `svc`, `configuration`. */
export function originOf(name: string, installed: readonly LockedPlugin[]): string {
  const locked = installed.find(lockedPlugin => lockedPlugin.name === name)
  if (locked) return originText(locked)
  return isCurated(name) ? 'svc' : 'configuration'
}

const originText = ({ origin }: LockedPlugin) => `${origin.kind} ${origin.spec}`

function originFacts(plugin: PluginReport, { installed }: PluginTree): string[] {
  if (installed === undefined) return []
  const { name, isolation, state, restarts } = plugin
  const refused = refusedText(plugin)
  const accepted = valueWords(installed.find(locked => locked.name === name)?.values ?? {})
  return [
    `from      ${visible(originOf(name, installed))}`,
    ...(accepted.length === 0 ? [] : [`accepted  ${visible(accepted.join(', '))}`]),
    `runs      ${isolation}`,
    `health    ${state}${restarts === undefined || restarts === 0 ? '' : `, restarted ${restarts} ${restarts === 1 ? 'time' : 'times'}`}`,
    ...(refused === undefined ? [] : [`refused   ${visible(refused)}`]),
  ]
}

const idleFacts = ({ locked, hint }: Idle) => [`from      ${originText(locked)}`, `hint      ${hint}`].map(visible)

const dim = (text: string) => styleText('gray', text, { stream: process.stdout })
const bold = (text: string) => styleText('bold', visible(text), { stream: process.stdout })
const marked = ({ name, version, kind }: Partial<Resting> & Pick<Resting, 'name' | 'version'>) =>
  `${visible(name)} ${dim(visible([version, kind].filter(Boolean).join(' ')))}`

function nameLine(plugin: PluginReport, { orders }: PluginTree): string {
  const { name, instance, version, kind, setupMs, optional, state } = plugin
  const marks = [
    version,
    kind,
    milliseconds(setupMs),
    ...(optional ? ['optional'] : []),
    ...(state === 'running' ? [] : [state.toUpperCase()]),
  ]
  return `${orders.get(plugin)} ${bold(instance === undefined ? name : `${name} (${instance})`)} ${dim(visible(marks.join('  ')))}`
}

function factsOf({ provides, alsoProvides = [], requires, added, absent = {}, permissions, error }: PluginReport): string[] {
  const lists = (word: string, record: Readonly<Record<string, readonly string[]>>) =>
    Object.entries(record).map(([key, names]) => `${word} ${key}: ${names.join(', ')}`)
  return [
    ...(error ? [`failed    ${error.code}: ${error.message}`] : []),
    ...(provides ? [`provides  ${[provides, ...alsoProvides].join(', ')}`] : []),
    ...(requires.length > 0 ? [`requires  ${requires.join(', ')}`] : []),
    ...lists('added    ', added),
    ...lists('declared, but not added:', absent),
    ...lists('may      ', permissions),
  ].map(visible)
}

function branch(head: string, facts: readonly string[], last: boolean): string {
  const lines = facts.map((fact, at) => `${last ? '   ' : '│  '}${at === facts.length - 1 ? '└─' : '├─'} ${fact}`)
  return [`${last ? '└─' : '├─'} ${head}`, ...lines].join('\n')
}
