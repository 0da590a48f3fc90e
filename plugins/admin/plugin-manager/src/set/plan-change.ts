import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { nearest, shownPath } from '@svc/core'
import { type PluginCandidate, type ChangeRequest, type SetOptions, type StagedChange } from './change-types.ts'
import { mapAtOnce } from './at-once.ts'
import { candidateOf, type Fetched, fetchPlugin, type RequestedPlugin } from './fetch.ts'
import { buildSet, type SetPlan, writeSet } from './build-set.ts'
import { dependencyStray, noFormer, notInstalled, sameVersion, sourceGone, specInvalid } from './errors.ts'
import { formerTarball, formerVersionOf } from './former.ts'
import { holdSet } from './hold.ts'
import { type Lock, type LockedPlugin, needsSet, setFolder, settledLock, tarballName } from './lock.ts'
import { readNpmLock, strayDependency } from './lock-graph.ts'
import { runNpm } from './npm.ts'
import { linkOrigin, originOf } from './spec.ts'
import { createStagedChange, createStaging, type Staging, sweep } from './staging.ts'
import { contentsIn } from './tarball.ts'
import { problemsOf } from './verify.ts'

/**
 * Plans a change: fetches tarballs, inspects them without unpacking, resolves dependencies. Touches nothing that is installed,
 * and runs no code of a plugin. Throws PLUGIN_SET_BUSY, LOCK_INVALID, PLUGIN_SPEC_INVALID, PLUGIN_NOT_INSTALLED,
 * PLUGIN_NOT_FOUND, PLUGIN_NOT_A_PLUGIN, PLUGIN_NAME_OURS, PLUGIN_NAME_DIFFERS, PLUGIN_TARBALL_UNSAFE, PLUGIN_DEPENDENCY_STRAY,
 * PLUGIN_CHANGED (a kept tarball has changed), PLUGIN_FORMER_MISSING, PLUGIN_VERSION_REUSED, PLUGIN_SOURCE_GONE, MANIFEST_INVALID, MANIFEST_NEWER, NPM_MISSING, NPM_FAILED.
 */
export async function planChange(home: string, request: ChangeRequest, options: SetOptions = {}): Promise<StagedChange> {
  options.signal?.throwIfAborted()
  const asked = askedBy(request)
  await using undo = new AsyncDisposableStack()
  const hold = undo.use(await holdSet(home, whatOf(request)))
  const before = await settledLock(home)
  const wanted = [...asked, ...updatedBy(request, before), ...rolledBackBy(home, request, before)]
  const removed = removedBy(request, before)
  await sweep(home, before)
  const staging = createStaging(home)
  undo.defer(() => staging.remove(false))
  const fetched = await fetchAll(wanted, staging, request, options)
  for (const plugin of fetched) await checkVersion(plugin, before, setFolder(home, before))
  // changed files are rebuilt, even from the same tarballs
  const isWhole = (await problemsOf(home, before)).length === 0
  const plan = planOf(home, before, fetched, removed, { staging, request, options, isWhole })
  const candidates = await candidatesOf(plan)
  undo.move()
  return createStagedChange({
    home,
    before,
    candidates,
    removed,
    isEmpty: isWhole && removed.length === 0 && candidates.every(candidate => candidate.same && sameOrigin(candidate, before)),
    staging,
    hold,
    make: () => buildSet(plan, candidates),
    notify: step => options.onProgress?.({ step }),
  })
}

const WORDS = ['install', 'link', 'uninstall', 'update', 'rollback'] as const

/** For a command that finds the plugins busy: `install svc-plugin-x`. */
function whatOf(request: ChangeRequest): string {
  const names = { ...request, install: request.install?.map(item => item.spec) }
  return WORDS.flatMap(word => (names[word]?.length ? [`${word} ${[names[word]].flat().join(', ')}`] : [])).join('; ')
}

/** Rejects an invalid spec before anything is written down: it can be an address with a password. */
const askedBy = ({ install = [], link = [] }: ChangeRequest): RequestedPlugin[] => [
  ...install.map(({ spec, scripts = false }) => ({ origin: originOf(spec), scripts })),
  ...link.map(spec => ({ origin: linkOrigin(spec), scripts: false })),
]

function updatedBy({ update = [] }: ChangeRequest, lock: Lock): RequestedPlugin[] {
  const names = update === 'all' ? lock.plugins.map(plugin => plugin.name) : update
  const found = names.map(name => installed(lock, name)).filter(needsSet)
  for (const { name, origin } of found)
    if (origin.kind !== 'registry' && !existsSync(origin.spec)) throw sourceGone(name, origin.kind, shownPath(origin.spec))
  return found
}

const rolledBackBy = (home: string, { rollback = [] }: ChangeRequest, lock: Lock): RequestedPlugin[] =>
  rollback.map(name => {
    const former = formerVersionOf(home, installed(lock, name))
    const file = former && formerTarball(home, former)
    if (file === undefined || !existsSync(file)) throw noFormer(name)
    const { origin, scripts, integrity } = former!
    return { origin, scripts, kept: { name, file, integrity } }
  })

const removedBy = ({ uninstall = [] }: ChangeRequest, lock: Lock): LockedPlugin[] =>
  [...new Set(uninstall)].map(name => installed(lock, name))

function installed({ plugins }: Lock, name: string): LockedPlugin {
  const found = plugins.find(plugin => plugin.name === name)
  if (found) return found
  const names = plugins.map(plugin => plugin.name)
  throw notInstalled(name, nearest(name, names))
}

/**
 * A published version never changes, so other files of the same version are a mistake or an attack. Compares files, because
 * two versions of npm pack the same files differently. Throws PLUGIN_VERSION_REUSED.
 */
async function checkVersion({ name, version, integrity, contents }: Fetched, { plugins }: Lock, set: string | undefined) {
  const old = plugins.find(plugin => plugin.name === name)
  if (old?.version !== version || contents === undefined || !needsSet(old) || old.integrity === integrity) return
  const then = await contentsIn(join(set ?? '', 'tarballs', tarballName(name, version))).catch(() => undefined)
  if (then === undefined) return // a damaged set is installed again
  const files = [...new Set([...then.keys(), ...contents.keys()])].filter(path => then.get(path) !== contents.get(path))
  if (files.length > 0) throw sameVersion(name, version, files.sort().slice(0, NAMED))
}

/** How many changed files an error names. */
const NAMED = 5

async function fetchAll(
  wanted: readonly RequestedPlugin[],
  { work }: Staging,
  { offline = false }: ChangeRequest,
  options: SetOptions
): Promise<Fetched[]> {
  const fetched = await mapAtOnce(
    wanted,
    (requested, at, signal) => {
      const notify = (step: 'fetch' | 'inspect', plugin: string) =>
        options.onProgress?.({ step, plugin, at: at + 1, of: wanted.length })
      return fetchPlugin(requested, { work: `${work}/${at}`, npm: { ...options, offline, signal }, notify })
    },
    options.signal
  )
  for (const [at, { name }] of fetched.entries())
    if (fetched.findIndex(plugin => plugin.name === name) < at)
      throw specInvalid(wanted[at]!.origin.spec, `${name} is named twice`)
  return fetched
}

type ResolveContext = Pick<SetPlan, 'staging' | 'options'> & { readonly request: ChangeRequest; readonly isWhole: boolean }

function planOf(
  home: string,
  before: Lock,
  fetched: readonly Fetched[],
  removed: readonly LockedPlugin[],
  around: ResolveContext
): SetPlan {
  const { request, isWhole, ...rest } = around
  const isSame = (item: Fetched) => isWhole && before.plugins.some(old => sameBytes(item, old))
  const fresh = fetched.filter(item => item.tarball !== undefined && !isSame(item))
  const gone = new Set([...fresh, ...fetched.filter(item => item.tarball === undefined), ...removed].map(item => item.name))
  const dropped = before.plugins.filter(plugin => needsSet(plugin) && gone.has(plugin.name)).map(plugin => plugin.name)
  return {
    home,
    before,
    fetched,
    ingredients: {
      old: setFolder(home, before),
      kept: before.plugins.filter(plugin => needsSet(plugin) && !gone.has(plugin.name)),
      fresh,
      // npm also resolves a name anew that was only a dependency before
      dropped: [...new Set([...dropped, ...fresh.map(item => item.name)])],
    },
    removed,
    offline: request.offline ?? false,
    ...rest,
  }
}

const sameBytes = (fetched: Fetched, old: LockedPlugin) =>
  fetched.name === old.name &&
  fetched.tarball !== undefined &&
  fetched.integrity === old.integrity &&
  fetched.scripts === old.scripts

const sameOrigin = ({ name, origin }: PluginCandidate, { plugins }: Lock) => {
  const old = plugins.find(plugin => plugin.name === name)
  return old?.origin.kind === origin.kind && old.origin.spec === origin.spec
}

/** npm would request an address or repository before the user has consented. npm 11.16 and later reject them. */
const NOTHING_FROM_ELSEWHERE = ['--allow-git=none', '--allow-remote=none']

/** Lets npm resolve the dependencies of new plugins without installing. Skips npm if none has any. */
async function candidatesOf({ before, fetched, ingredients, staging, offline, options }: SetPlan): Promise<PluginCandidate[]> {
  const { fresh, old } = ingredients
  const isAsked = fresh.some(item => item.hasDependencies)
  if (isAsked) {
    options.onProgress?.({ step: 'resolve' })
    await writeSet(staging.set, ingredients)
    const plugin = fresh.length === 1 ? { plugin: fresh[0]!.name } : {}
    await runNpm(['install', '--package-lock-only', ...NOTHING_FROM_ELSEWHERE], {
      ...options,
      ...plugin,
      cwd: staging.set,
      offline,
    })
  }
  const lock = isAsked || old === undefined ? await readNpmLock(staging.set) : await readNpmLock(old)
  const stray = isAsked && lock !== undefined ? strayDependency(lock) : undefined
  if (stray) throw dependencyStray(stray.of, stray.what)
  return fetched.map(item => candidateOf(item, before, lock))
}
