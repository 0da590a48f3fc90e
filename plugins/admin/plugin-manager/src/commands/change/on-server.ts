import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findSettings, here, servedFile, setHome } from '@svc/cli/program'
import type { Json, PlannedPlugin, PluginChange, PluginPlan } from '@svc/core/contracts'
import { archiveDiffers, planChanged, rolledBack, sourceLocal } from '../../errors.ts'
import { type ChangeRequest, type Lock, type LockedPlugin, planChange, readLock, type StagedChange } from '../../set.ts'
import { checkRevision } from './cluster-set.ts'
import { named } from './install.ts'
import { stepText } from './progress.ts'
import { accessOf, newValues } from './configured-access.ts'
import { plannedAccess } from './planned-access.ts'
import type { Proposal } from './proposal-text.ts'
import { changesNothing, type ChangePlace, checkProposals, proposalsOf, putInEffect, switchInEffect } from './proposals.ts'
import { type ChangeResult, settleAbandoned } from './take-up.ts'

// The changes of `svc plugins` in a worker of the server: the same steps, without a person who is asked.

/** Code runs only in the mode that the plugin supports and, outside of a sandbox, only if a person has trusted it with the command. */
const CHOICE = { trust: false }

/** A change whose archive lies in the svc home: `archive` is the hash of its bytes. */
export interface KeptChange extends Omit<PluginChange, 'archive'> {
  readonly archive?: string
}

/** Longer than a plan and its job last. */
const ARCHIVE_LASTS_MS = 3_600_000

const archivesFolder = () => join(setHome(), 'plugins', 'archives')
/** Errors name the file, so its own name has no hash. */
const archiveFile = (hash: string) => join(archivesFolder(), hash, 'archive.tgz')

/** Keeps the archive of a change for its plan, under the hash of its bytes, and removes old ones. */
export async function keepArchive({ archive, ...change }: PluginChange): Promise<KeptChange> {
  if (archive === undefined) return change
  await removeOldArchives()
  const bytes = Buffer.from(archive, 'base64')
  const hash = createHash('sha256').update(bytes).digest('hex')
  await mkdir(join(archivesFolder(), hash), { recursive: true, mode: 0o700 })
  await writeFile(archiveFile(hash), bytes, { mode: 0o600 })
  return { ...change, archive: hash }
}

/** Whether this node has the archive with this hash. */
export const hasArchive = (hash: string): boolean => existsSync(archiveFile(hash))

async function removeOldArchives(): Promise<void> {
  const names = await readdir(archivesFolder()).catch(() => [])
  for (const folder of names.map(name => join(archivesFolder(), name))) {
    const at = await stat(folder).catch(() => undefined)
    if (at && Date.now() - at.mtimeMs > ARCHIVE_LASTS_MS) await rm(folder, { recursive: true, force: true })
  }
}

/** Plans a change. No code of a plugin runs, and nothing that is installed changes. */
export async function planOnServer(
  change: KeptChange,
  { signal, lastsMs }: { readonly signal: AbortSignal; readonly lastsMs: number }
): Promise<PluginPlan> {
  const place: ChangePlace = { config: servedFile(), signal, report: () => {} }
  const body = await inStage(change, place, async (before, staged) =>
    staged === undefined ? switchBody(change, before) : stagedBody(change, staged, await proposed(staged, place))
  )
  const now = Date.now()
  return { ...body, created_at: new Date(now).toISOString(), expires_at: new Date(now + lastsMs).toISOString() }
}

/**
 * Applies exactly a plan, and resolves with the result of its job. Throws CONFLICT if the package or the installed plugins are
 * not those of the plan, and PLUGIN_CHANGE_ROLLED_BACK. An attempt after an interruption finds a change that is in effect.
 */
export async function applyOnServer(
  { change, plan }: { readonly change: KeptChange; readonly plan: PluginPlan },
  { signal, report }: { readonly signal: AbortSignal; readonly report: (message: string) => void }
): Promise<Json> {
  const place: ChangePlace = { config: servedFile(), signal, report: step => report(stepText(step)) }
  await settleAbandoned(setHome(), here().home)
  await checkRevision(servedFile(), signal)
  if (isInEffect(plan, await readLock(setHome()))) return resultOf(plan, [], true)
  const taken = await inStage(change, place, async (before, staged) => {
    if (staged === undefined) {
      checkSame(plan, switchBody(change, before))
      if (plan.is_empty) return NOTHING_TAKEN
      return switchInEffect(before, { names: [change.name], enabled: change.action === 'enable' }, place)
    }
    const proposals = await proposed(staged, place)
    checkSame(plan, stagedBody(change, staged, proposals))
    if (plan.is_empty) return NOTHING_TAKEN
    return putInEffect(staged, proposals, place)
  })
  if (taken.problems.length > 0) throw rolledBack(taken.problems)
  return resultOf(plan, taken.urls, false)
}

const NOTHING_TAKEN: ChangeResult = { problems: [], urls: [], others: [] }

/** Calls `work` with the lock, and with the prepared change if files change. */
async function inStage<T>(
  change: KeptChange,
  { signal, report }: ChangePlace,
  work: (before: Lock, staged?: StagedChange) => Promise<T>
): Promise<T> {
  const { action, name } = change
  const before = await readLock(setHome())
  if (action !== 'install') checkOrigin(action, named(before.plugins, name))
  if (action === 'enable' || action === 'disable') return work(before)
  await using staged = await planChange(setHome(), requestOf(change), { signal, onProgress: report })
  if (change.archive !== undefined) checkArchive(name, staged)
  return await work(staged.before, staged)
}

/** The server reads only the registry. */
function checkOrigin(action: PluginChange['action'], { name, origin: { kind } }: LockedPlugin): void {
  if (action === 'update' && kind !== 'registry') throw sourceLocal(name, kind)
}

/** An archive says itself which package it has; a name that the caller gives must be that one. */
function checkArchive(name: string, { candidates: [candidate] }: StagedChange): void {
  if (name !== '' && candidate !== undefined && candidate.name !== name) throw archiveDiffers(name, candidate.name)
}

function requestOf({ action, name, version, archive }: KeptChange): ChangeRequest {
  if (archive !== undefined) return { install: [{ spec: archiveFile(archive) }] }
  if (action === 'install') return { install: [{ spec: version === undefined ? name : `${name}@${version}` }] }
  if (action === 'rollback') return { rollback: [name] }
  return action === 'update' ? { update: [name] } : { uninstall: [name], offline: true }
}

async function proposed(staged: StagedChange, { config }: ChangePlace): Promise<Proposal[]> {
  const { value } = await findSettings(config === undefined ? {} : { config })
  const proposals = proposalsOf(staged, CHOICE, (candidate, former) => accessOf(candidate, value, former))
  await checkProposals(staged, proposals, config)
  return proposals
}

/** A plan without its times. */
type PlanBody = Omit<PluginPlan, 'created_at' | 'expires_at'>

const stagedBody = ({ action, name }: KeptChange, staged: StagedChange, proposals: readonly Proposal[]): PlanBody =>
  hashed(staged.before, {
    action,
    name: name || (staged.candidates[0]?.name ?? ''),
    plugins: proposals.map(plannedOf),
    changes: staged.removed.map(plugin => ({ name: plugin.name, version: plugin.version, to: 'removed' as const })),
    is_empty: changesNothing(staged, proposals),
  })

function switchBody({ action, name }: KeptChange, before: Lock): PlanBody {
  const plugin = named(before.plugins, name)
  const to = action === 'enable' ? ('enabled' as const) : ('disabled' as const)
  const changes = [{ name, version: plugin.version, to }]
  return hashed(before, { action, name, plugins: [], changes, is_empty: plugin.enabled === (action === 'enable') })
}

/** What follows from the rest of a plan, in words that depend on the home of its reader. It is not in the hash. */
const SENTENCES = { access: undefined, routes: undefined, pages: undefined, checks: undefined }

/** Also over the installed plugins: a plan holds only for them. */
function hashed(before: Lock, body: Omit<PlanBody, 'hash'>): PlanBody {
  const installed = before.plugins.map(({ declares: _declares, commands: _commands, ...plugin }) => plugin)
  const facts = { ...body, plugins: body.plugins.map(plugin => ({ ...plugin, ...SENTENCES })) }
  return {
    hash: createHash('sha256')
      .update(JSON.stringify({ body: facts, installed }))
      .digest('hex'),
    ...body,
  }
}

const plannedOf = (proposal: Proposal): PlannedPlugin => ({ ...factsOf(proposal), ...plannedAccess(proposal) })

const factsOf = ({ candidate, isolation, access }: Proposal): Omit<PlannedPlugin, keyof typeof SENTENCES> => ({
  name: candidate.name,
  version: candidate.version,
  from_version: candidate.from ?? null,
  kind: candidate.manifest.kind,
  description: candidate.description,
  integrity: candidate.integrity,
  isolation,
  contributes: (candidate.manifest.contributes ?? {}) as PlannedPlugin['contributes'],
  permissions: { ...candidate.permissions },
  permission_change: candidate.permissionChange,
  new_permission_values: { ...newValues(access) },
  missing_settings: access.missing,
  install_scripts: candidate.installScripts,
  packages: candidate.packages.toSorted((a, b) => (textOf(a) < textOf(b) ? -1 : 1)),
})

const textOf = ({ name, version }: { readonly name: string; readonly version: string }) => `${name}@${version}`

function checkSame(plan: PluginPlan, now: PlanBody): void {
  if (plan.hash !== now.hash) throw planChanged(differencesOf(plan, now))
}

/** Describes what differs from a plan, for a person. */
export function differencesOf(plan: PlanBody, now: PlanBody): string[] {
  const found = plan.plugins.flatMap(planned => {
    const other = now.plugins.find(({ name }) => name === planned.name)
    return other === undefined ? [`${planned.name} is not part of the change any more`] : pluginDifferences(planned, other)
  })
  return found.length > 0 ? found : ['the installed plugins have changed']
}

function pluginDifferences(planned: PlannedPlugin, now: PlannedPlugin): string[] {
  const { name } = planned
  const members = Object.keys(planned) as (keyof PlannedPlugin)[]
  const differing = members.filter(member => JSON.stringify(planned[member]) !== JSON.stringify(now[member]))
  return differing.flatMap(member => {
    if (member === 'version' || member === 'integrity') return [`${name}: ${member} ${planned[member]} is now ${now[member]}`]
    if (member === 'permissions') return permissionDifferences(planned, now)
    if (member === 'packages') return [`${name}: other dependencies: ${packageDifferences(planned, now).join(', ')}`]
    return member === 'permission_change' || member in SENTENCES ? [] : [`${name}: ${member} has changed`]
  })
}

const permissionsIn = ({ permissions }: PlannedPlugin) =>
  new Set(Object.entries(permissions).flatMap(([kind, names]) => names.map(name => `${kind} ${name}`)))

function permissionDifferences(planned: PlannedPlugin, now: PlannedPlugin): string[] {
  const [then, today] = [permissionsIn(planned), permissionsIn(now)]
  return [
    ...[...today.difference(then)].map(permission => `${now.name} now asks for ${permission}`),
    ...[...then.difference(today)].map(permission => `${now.name} no longer asks for ${permission}`),
  ]
}

/** How many dependencies a difference names. */
const NAMED = 10

function packageDifferences(planned: PlannedPlugin, now: PlannedPlugin): string[] {
  const textsOf = ({ packages }: PlannedPlugin) => new Set(packages.map(item => `${textOf(item)} ${item.integrity}`))
  const names = [...textsOf(planned).symmetricDifference(textsOf(now))].map(item => item.split(' ')[0]!)
  return [...new Set(names)].slice(0, NAMED)
}

/** Whether an attempt before this one has already put the plan in effect. */
function isInEffect({ action, name, plugins, changes, is_empty }: PluginPlan, { plugins: installed }: Lock): boolean {
  if (is_empty) return false
  const found = installed.find(plugin => plugin.name === name)
  if (action === 'uninstall') return found === undefined
  if (action === 'enable' || action === 'disable') return changes.every(({ to }) => found?.enabled === (to === 'enabled'))
  return plugins.every(planned => {
    const plugin = installed.find(item => item.name === planned.name)
    return plugin?.integrity === planned.integrity && plugin.version === planned.version && plugin.isolation === planned.isolation
  })
}

const resultOf = (
  { hash, action, name, plugins, changes }: PluginPlan,
  urls: ChangeResult['urls'],
  wasInEffect: boolean
): Json => ({
  hash,
  action,
  name,
  plugins: plugins.map(plugin => ({ name: plugin.name, version: plugin.version })),
  changes: changes.map(change => ({ ...change })),
  reloaded: urls.length,
  was_in_effect: wasInEffect,
})
