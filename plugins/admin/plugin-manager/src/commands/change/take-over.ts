import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { here, servedFile, setHome } from '@svc/cli/program'
import { asSvcError, type CallContext, codeOf, type SvcError } from '@svc/core'
import type { Store } from '@svc/core/contracts'
import { plainText } from '../../errors.ts'
import {
  changeLock,
  consentDiffers,
  fetchRevision,
  hasRevision,
  type LockedPlugin,
  needsSet,
  newestRevision,
  type NpmLock,
  planChange,
  planRestore,
  platformDiffers,
  readLock,
  readNodeRevision,
  readNpmLock,
  type Revision,
  type RevisionStore,
  type StagedChange,
  writeNodeRevision,
  type TakenOver,
} from '../../set.ts'
import { keepRevision, PLATFORM } from './cluster-set.ts'
import { checkIsolation, checkNames } from './isolation.ts'
import { settleAbandoned, tryChange } from './take-up.ts'
import { withTransferFile } from './transfer-file.ts'

// A node takes over the plugins of its cluster: the consent of a person on one node holds for all.

const label = ({ name, version }: LockedPlugin) => `${name} ${version}`

/** Puts the newest revision of the cluster in effect on this node, and reloads its servers. `server`: the process id of one that runs. Throws PLUGIN_SET_BUSY, SERVER_SILENT, and the errors of the store. */
export async function takeOver(revisions: RevisionStore, ctx: CallContext, server?: number): Promise<TakenOver> {
  const home = setHome()
  const revision = await newestRevision(revisions, ctx)
  const before = (await readLock(home)).plugins.map(label)
  if (revision === undefined || hasRevision(readNodeRevision(home), revision))
    return { result: 'current', revision, before, problems: [] }
  await settleAbandoned(home, here().home)
  const problems = await withTransferFile(home, file =>
    putRevision(revision, { store: revisions.store, file, ctx, server })
  ).catch(problemsOf)
  if (problems === undefined) return { result: 'current', revision, before, problems: [] }
  if (problems.length === 0) {
    await keepRevision(revision)
    return { result: 'taken', revision, before, problems }
  }
  const { code, message, plugin } = problems[0]!
  const text = plainText({ message: plugin === undefined ? message : `${plugin}: ${message}` })
  await writeNodeRevision(home, { ...readNodeRevision(home), failed: { revision: revision.revision, code, message: text } })
  return { result: 'refused', revision, before, problems }
}

/** Errors of the store, of a busy home and of a busy server say nothing about the revision. */
function problemsOf(error: unknown): SvcError[] {
  const isOther = /^(PLUGIN_SET_BUSY|SERVER_SILENT|(STORE|LEASE|POSTGRES)_\w+)$/.test(codeOf(error) ?? '')
  if (isOther || (error instanceof Error && error.name === 'AbortError')) throw error
  return [asSvcError(error, 'PLUGIN_SET_REFUSED')]
}

interface Transfer {
  readonly store: Store
  readonly file: string
  readonly ctx: CallContext
  readonly server: number | undefined
}

/** The problems that keep the former plugins in effect. Undefined if the node has the revision meanwhile. */
async function putRevision(revision: Revision, { store, file, ctx, server }: Transfer): Promise<readonly SvcError[] | undefined> {
  const home = setHome()
  const { signal } = ctx
  if (revision.sha256 !== '') await fetchRevision(store, revision, file, ctx)
  await using change =
    revision.sha256 === '' ? await planRemoval(home, signal) : await planRestore(home, file, { signal, keepsLinks: true })
  // another server of this home can have taken it over
  if (hasRevision(readNodeRevision(home), revision)) return undefined
  if (change === undefined) return []
  const built = await change.build()
  const config = servedFile()
  checkConsent(change, built.plugins)
  if (revision.platform !== PLATFORM) await checkPlatform(built.folder, built.plugins, revision)
  await checkNames(change, config)
  const taking = { config, before: change.before, signal, report: () => {}, writes: false, server }
  return (await tryChange(here().home, taking, holds => change.commit(built.plugins, holds))).problems
}

/** Undefined if there is nothing to remove. */
async function planRemoval(home: string, signal: AbortSignal): Promise<StagedChange | undefined> {
  const names = (await settled(home)).plugins.filter(needsSet).map(({ name }) => name)
  return names.length === 0 ? undefined : planChange(home, { uninstall: names, offline: true }, { signal })
}

/** The lock, while no other process tries a change. Throws PLUGIN_SET_BUSY. */
const settled = (home: string) => changeLock(home, lock => lock)

/** The lock of the revision is what a person has accepted; the packages must not ask for anything else. */
function checkConsent({ candidates }: StagedChange, plugins: readonly LockedPlugin[]): void {
  for (const candidate of candidates) {
    const { isolation, trusted } = plugins.find(({ name }) => name === candidate.name)!
    if (!isDeepStrictEqual(candidate.manifest.permissions ?? {}, candidate.permissions)) throw consentDiffers(candidate.name)
    checkIsolation(candidate, isolation, trusted)
  }
}

/** npm has chosen the packages for the platform of the node that wrote the revision. */
async function checkPlatform(folder: string, plugins: readonly LockedPlugin[], { platform }: Revision): Promise<void> {
  const scripted = plugins.find(({ scripts }) => scripts)
  if (scripted) throw platformDiffers(scripted.name, platform, PLATFORM)
  const lock = folder === '' ? undefined : await readNpmLock(folder)
  for (const [path, item] of Object.entries(lock?.packages ?? {}))
    if (fits(item) !== existsSync(join(folder, path)) && isBound(item))
      throw platformDiffers(path.replace(/^.*node_modules\//, ''), platform, PLATFORM)
}

type NpmPackage = NpmLock['packages'][string]

const isBound = ({ os, cpu }: NpmPackage) => os !== undefined || cpu !== undefined
const fits = ({ os, cpu }: NpmPackage) => allows(os, process.platform) && allows(cpu, process.arch)

/** As npm reads it: `!` excludes, and a list of names allows only these. */
function allows(list: readonly string[] = [], name: string): boolean {
  const names = list.filter(item => !item.startsWith('!'))
  return !list.includes(`!${name}`) && (names.length === 0 || names.includes(name) || names.includes('any'))
}
