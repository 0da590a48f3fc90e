import { homedir } from 'node:os'
import { resolve, sep } from 'node:path'
import { styleText } from 'node:util'
import { oneLine, visible } from '@svc/cli/command'
import {
  type AnyHook,
  type AnyService,
  type AnySlot,
  type ConsolePlace,
  consolePagesOf,
  type HookKind,
  Host,
  type Manifest,
  errorFormatsOf,
  type RouteManifest,
  routesOf,
  shownPath,
  slotsOf,
} from '@svc/core'
import * as contracts from '@svc/core/contracts'
import { type PermissionValues, settingIn, VALUE_KINDS } from '@svc/runtime/isolation'
import type { PluginCandidate, IsolationMode, LockedPlugin, Origin, Permissions } from '../../set.ts'
import { type ConfiguredAccess, newValues } from './configured-access.ts'
import { runsText } from './isolation.ts'

/** A plugin to install, with its isolation. */
export interface Proposal {
  readonly candidate: PluginCandidate
  readonly isolation: IsolationMode
  readonly trusted: boolean
  readonly access: ConfiguredAccess
}

/** Describes the values that were not accepted before: `connect to db.internal:5432`. */
export const newValueWords = (access: ConfiguredAccess): string[] => valueWords(newValues(access))

/** Describes values of settings. */
export const valueWords = (values: PermissionValues): string[] =>
  VALUE_KINDS.flatMap(kind => (values[kind] ?? []).map(value => KINDS[kind].say(value)))

/**
 * Describes a plugin and its permissions to a person before the installation. `isOpen`: its process can run without a sandbox.
 */
export function proposalText({ candidate, isolation, access }: Proposal, isOpen: boolean): string {
  const { name, version, from, manifest, description } = candidate
  const versions = from === undefined || from === version ? version : `${from} → ${version}`
  const head = `${styleText('bold', name, { stream: process.stderr })} ${versions}  ${visible(manifest.kind)}`
  const rows = [
    ['from', originWords(candidate.origin)],
    ...rowsOf('adds', addedWords(manifest.contributes)),
    ...rowsOf('answers', [...routeWords(manifest.contributes), ...errorFormatWords(manifest.contributes)]),
    ...rowsOf('checks', schemeWords(manifest)),
    ...rowsOf('shows', pageWords(manifest.contributes)),
    ...rowsOf('may', accessWords(isolation, candidate.permissions, access)),
    ...rowsOf(
      'needs',
      access.missing.map(setting => `${setting} in the configuration, which is not set`)
    ),
    ...changeRows(candidate, newValueWords(access)),
    ['scripts', scriptWords(candidate)],
    ['brings', bringsWords(candidate)],
    ...rowsOf('signed', signedWords(candidate)),
    ...rowsOf('tested', testedWords(manifest)),
    ['runs', runsText(isolation, isOpen)],
  ] as const
  const lines = rows.map(([word, text]) => `  ${word.padEnd(8)}  ${visible(text)}`)
  return [head, ...(description === '' ? [] : [`  ${visible(oneLine(description))}`]), ...lines].join('\n')
}

const testedWords = ({ tested }: Manifest): string[] =>
  tested === undefined ? [] : ['NOT in a process of its own, as its author recorded: it may not run like that']

type Row = readonly [word: string, text: string]
const rowsOf = (word: string, texts: readonly string[]): Row[] => texts.map((text, at) => [at === 0 ? word : '', text])

/** The origin of a plugin, for a person. */
export function originWords({ kind, spec }: Origin): string {
  if (kind === 'registry') return `the registry, as ${spec}`
  return `${kind === 'link' ? 'a link to the folder' : `the ${kind}`} ${shownPath(spec)}`
}

const addedWords = (contributes: PluginCandidate['manifest']['contributes'] = {}): string[] =>
  Object.entries(contributes).map(
    ([slot, names]) => `${slot}: ${(Array.isArray(names) ? (names as string[]) : Object.keys(names)).join(', ')}`
  )

/** Only the code of a scheme determines which credentials it reads. */
export const schemeWords = (manifest: PluginCandidate['manifest']): string[] =>
  slotsOf(manifest).flatMap(([slot, names]) =>
    slot === 'auth_schemes'
      ? names.map(name => `credentials of callers: "${name}" sees those that it reads, and decides what their owners can do`)
      : []
  )

const PLACES: Readonly<Record<ConsolePlace, (title: string) => string>> = {
  page: title => `the page "${title}" in the console`,
  overview: title => `the panel "${title}" on the overview of the console`,
  run: title => `the tab "${title}" of each run in the console`,
  conversation: title => `the tab "${title}" of each conversation in the console`,
  tool_result: title => `the page "${title}" in the console, for results of its tools,`,
}

/**
 * A page reaches nothing but the console. Browsers do not close the data channels of WebRTC to an app, so what it reads can leave. A view
 * is no code.
 */
export const pageWords = (contributes: Manifest['contributes']): string[] =>
  consolePagesOf({ contributes }).map(([, { title, scope, view, place = 'page' }]) => {
    const leak = view === undefined ? '; what it reads there can leave through their browser' : ''
    return `${PLACES[place](title)} to people with the scope ${scope}${leak}`
  })

/** Only an update has a former version to compare. */
function changeRows({ from, permissionChange: { added, removed } }: PluginCandidate, values: readonly string[]): Row[] {
  if (from === undefined) return []
  if (added.length + removed.length + values.length === 0) return [['asks', 'for the same permissions as before']]
  return [
    ...rowsOf(
      'asks',
      [...added, ...values.map(text => `${text} (from the configuration)`)].map(text => `for MORE: ${text}`)
    ),
    ...rowsOf('drops', [...removed]),
  ]
}

function scriptWords({ installScripts, scripts }: PluginCandidate): string {
  if (installScripts.length === 0) return 'none at install'
  const names = installScripts.join(', ')
  return scripts ? `${names}: WILL RUN NOW, without isolation` : `${names}: will not run (--allow-scripts runs them)`
}

function bringsWords({ dependencies, dependencyScripts }: PluginCandidate): string {
  const count = dependencies === 0 ? 'no other packages' : `${dependencies} other ${dependencies === 1 ? 'package' : 'packages'}`
  return dependencyScripts.length === 0 ? count : `${count}; the install scripts of ${dependencyScripts.join(', ')} never run`
}

/** The claims of the registry, unchecked. */
function signedWords({ registry }: PluginCandidate): string[] {
  if (registry === undefined) return []
  const { signatures, provenance } = registry
  const keys =
    signatures === 0 ? 'by no key of the registry' : `by ${signatures} ${signatures === 1 ? 'key' : 'keys'} of the registry`
  return [
    `${keys}; ${provenance === undefined ? 'no statement of where it was built' : `where it was built: ${provenance}`} (claimed by the registry, unchecked)`,
  ]
}

/** The same as JSON. */
export const proposalFacts = ({ candidate, isolation, trusted, access }: Proposal) => ({
  name: candidate.name,
  version: candidate.version,
  ...(candidate.from === undefined ? {} : { from_version: candidate.from }),
  kind: candidate.manifest.kind,
  description: candidate.description,
  origin: candidate.origin,
  contributes: candidate.manifest.contributes ?? {},
  permissions: candidate.permissions,
  permission_change: candidate.permissionChange,
  ...(candidate.manifest.tested === undefined ? {} : { tested: candidate.manifest.tested }),
  permission_values: access.values,
  new_permission_values: newValues(access),
  unset_variables: access.unset,
  install_scripts: candidate.installScripts,
  scripts_allowed: candidate.scripts,
  dependency_scripts: candidate.dependencyScripts,
  dependencies: candidate.dependencies,
  ...(candidate.registry ? { registry: candidate.registry } : {}),
  integrity: candidate.integrity,
  bytes: candidate.bytes,
  isolation,
  trusted,
  same: candidate.same,
})

/** An installed plugin as JSON. */
export const lockedFacts = ({
  name,
  version,
  origin,
  integrity,
  isolation,
  enabled,
  permissions,
  values = {},
  scripts,
  trusted,
}: LockedPlugin) => ({
  name,
  version,
  origin,
  integrity,
  isolation,
  enabled,
  permissions,
  permission_values: values,
  scripts_allowed: scripts,
  trusted,
})

interface RequestedAccess {
  readonly text: string
  /** Kind and name, as in the manifest: `console GET /orders`. */
  readonly permission: string
  /** Kind and value, of a permission that refers to a setting. */
  readonly value?: string
  /** Whether a permission covers nearly everything of its kind. */
  readonly isWide: boolean
}

/** Optional variables are a part of the variables. */
type PermissionKind = Exclude<keyof Permissions, 'optional_env'>

interface Kind {
  readonly say: (name: string) => string
  readonly isWide: (name: string) => boolean
}

const hasStar = (name: string) => name.includes('*')
/** `GET /notes/*` is everything of one thing. */
const hasStarBeforeEnd = (request: string) => hasStar(request.replace(/\/\*$/, ''))

/** Services and slots with power over what other plugins own. */
const WHOLE: Readonly<Record<string, string>> = {
  [contracts.Store.name]: 'read and change the data of all plugins in the store',
  [contracts.Postgres.name]: 'read and change all data in PostgreSQL',
  [contracts.Redis.name]: 'read and change all data in Redis',
  [contracts.Secrets.name]: 'read every secret',
  [contracts.Tools.name]: 'call every tool',
  [contracts.Providers.name]: 'call every provider with its API key',
  [contracts.Routes.name]: 'call every route of the API, without a credential',
  [contracts.JobKinds.name]: 'run every kind of job, without a credential',
}
/** Services of which an isolated plugin gets only what is its own. */
const OWN: readonly string[] = [contracts.Peers.name, contracts.NodeBus.name]

const serviceWords = (name: string) =>
  Object.hasOwn(WHOLE, name)
    ? WHOLE[name]!
    : OWN.includes(name)
      ? `exchange messages with its own processes, with the service ${name}`
      : `use the service ${name} with all its data`

/** Serious permissions come first: people read the first lines of a long list. */
const KINDS: Readonly<Record<PermissionKind, Kind>> = {
  public_routes: { say: name => `answer every client, without a credential: route ${name}`, isWide: hasStar },
  credential_headers: {
    say: name => `see the credentials that clients send in ${name}, including the API key and tokens of svc`,
    isWide: () => true,
  },
  server: { say: request => `with its commands, send ${request} to your server with your credentials`, isWide: hasStar },
  console: {
    say: request => `with its pages in the console, send ${request} to your server with the rights of the person there`,
    isWide: hasStarBeforeEnd,
  },
  services: { say: serviceWords, isWide: name => hasStar(name) || Object.hasOwn(WHOLE, name) },
  tools: { say: name => `call the tool ${name}`, isWide: hasStar },
  providers: { say: name => `call the provider ${name} with its API key`, isWide: hasStar },
  secrets: { say: name => `read the secret ${name}`, isWide: () => false },
  spaces: { say: name => `read and change all data in the space ${name} of the store`, isWide: hasStar },
  hooks: { say: hookWords, isWide: hasStar },
  write: { say: path => `write ${path}`, isWide: holdsAPerson },
  read: { say: path => `read ${path}`, isWide: holdsAPerson },
  env: { say: name => `read the variable ${name}`, isWide: hasStar },
  // *.example.org has one owner, *.org has many
  network: { say: host => `connect to ${host}`, isWide: host => /^\*(\.[^.]*)?(:\d+)?$/.test(host) },
}

const HOST_HOOK = `${Host.name}.`

/** The kinds of the hooks of svc, by id. Hooks of other plugins are not known before their code runs. */
const HOOK_KINDS: ReadonlyMap<string, HookKind> = new Map(
  Object.values(contracts).flatMap(token => hooksOf(token).map(({ id, kind }) => [id, kind]))
)

function hooksOf(token: unknown): readonly AnyHook[] {
  const { what, hooks, changed } = Object(token) as Partial<AnyService & AnySlot>
  if (what === 'slot' && changed) return [changed]
  return what === 'service' ? (Object.values(hooks ?? {}) as AnyHook[]) : []
}

/** The kind of a hook decides what its taps can do. Several hooks, or an unknown one, let a plugin do everything. */
function hookWords(name: string): string {
  if (OWN.some(service => name.startsWith(`${service}.`)) && HOOK_KINDS.has(name)) return `join ${name}: see its own messages`
  if (name.startsWith(HOST_HOOK)) return `join ${name}: run at this moment`
  const kind = HOOK_KINDS.get(name)
  if (kind === 'series') return `join ${name}: see all its messages`
  if (kind === 'bail') return `join ${name}: see all its messages, and answer or refuse them`
  return `join ${name}: see and change all its messages`
}

/** A path that contains a whole home, or the folder in which svc starts. */
function holdsAPerson(path: string): boolean {
  const whole = resolve(path)
  const isAround = (place: string) => place === whole || place.startsWith(whole.endsWith(sep) ? whole : whole + sep)
  return isAround(homedir()) || isAround(process.cwd())
}

/** Number of permissions that a person reads. */
const MOST = 20

type SettingValues = Pick<ConfiguredAccess, 'valuesOf' | 'isSet'>

/** Describes what a plugin can do. Nothing enforces the permissions of a plugin in the process of svc. */
export function accessWords(isolation: IsolationMode, permissions: Permissions, access?: SettingValues): string[] {
  const words = permissionWords(permissions, access)
  if (isolation !== 'in-process') return words
  return [UNENFORCED, ...(words[0] === NOTHING ? [] : words)]
}

/** What a plugin in the process of svc can do. */
export const UNENFORCED_ACCESS = 'do all that svc can do, because its permissions are not enforced in the process of svc'
const UNENFORCED = `WIDE: ${UNENFORCED_ACCESS}`
/** What a plugin without permissions can do. */
export const NOTHING =
  'use only its own files and the system files that every program can read: no network, no environment variables'

/**
 * Describes permissions: wide ones first and marked; a long list is shortened. With `access`, shows the values of the settings
 * to which they refer.
 */
export function permissionWords(permissions: Permissions, access?: SettingValues): string[] {
  const all = requestedAccess(permissions, access)
  if (all.length === 0) return [NOTHING]
  const wide = all.filter(item => item.isWide)
  const others = all.filter(item => !item.isWide)
  const rest = others.length - MOST
  return [
    ...wide.map(({ text }) => `WIDE: ${text}`),
    ...others.slice(0, MOST).map(({ text }) => text),
    ...(rest > 0 ? [`and ${rest} more, none of them wide: --json lists all`] : []),
  ]
}

/** Describes each permission. */
export function requestedAccess(permissions: Permissions, access: SettingValues | undefined): RequestedAccess[] {
  const optional = permissions.optional_env ?? []
  return (Object.keys(KINDS) as PermissionKind[]).flatMap(kind =>
    (permissions[kind] ?? []).flatMap(name =>
      kind === 'env' && optional.includes(name) ? optionalAccess(name) : askedOf(kind, name, access)
    )
  )
}

const optionalAccess = (name: string): RequestedAccess => ({
  permission: `env ${name}`,
  text: `${KINDS.env.say(name)}, which it does not need`,
  isWide: KINDS.env.isWide(name),
})

function askedOf(kind: PermissionKind, name: string, access: SettingValues | undefined): RequestedAccess[] {
  const { say, isWide } = KINDS[kind]
  const setting = settingIn(name)
  const permission = `${kind} ${name}`
  if (setting === undefined || !isValueKind(kind)) return [{ permission, text: say(name), isWide: isWide(name) }]
  const text = say(kind === 'env' ? `that ${setting} names` : `the value of ${setting}`)
  if (access === undefined) return [{ permission, text, isWide: false }]
  const values = access.valuesOf(kind, setting)
  if (values.length > 0)
    return values.map(value => ({
      permission,
      value: `${kind} ${value}`,
      text: `${say(value)} (${setting})`,
      isWide: isWide(value),
    }))
  const isSet = access.isSet(setting)
  return [
    { permission, text: `${text}, which ${isSet ? 'svc cannot read' : 'is not set; svc asks again when it is'}`, isWide: false },
  ]
}

const isValueKind = (kind: PermissionKind): kind is keyof PermissionValues => VALUE_KINDS.includes(kind as keyof PermissionValues)

/** Describes routes: those without a credential first. */
export function routeWords(contributes: Manifest['contributes']): string[] {
  const all = routesOf({ contributes }).map(([, route]) => route)
  return [...all.filter(isOpen), ...all.filter(route => !isOpen(route))].map(wordsOf)
}

/** Describes the formats of errors. */
export const errorFormatWords = (contributes: Manifest['contributes']): string[] =>
  errorFormatsOf({ contributes }).map(
    ({ path, header }) => `${path}/*: gives errors its own format${header === undefined ? '' : `, for requests with ${header}`}`
  )

const isOpen = ({ scope }: RouteManifest) => scope === undefined

const wordsOf = ({ method, path, scope }: RouteManifest) =>
  `${method} ${path}: ${scope === undefined ? 'OPEN to every client, without a credential' : `needs the scope ${scope}`}`
