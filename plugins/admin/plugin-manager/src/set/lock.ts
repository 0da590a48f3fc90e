import { existsSync, readFileSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '@svc/runtime/home-files'
import type { PermissionValues } from '@svc/runtime/isolation'
import { codeOf, type Manifest, messageOf, schema } from '@svc/core'
import { lockInvalid } from './errors.ts'
import { isHeld } from './hold.ts'

/** Names that npm accepts today; none leaves its folder. */
export const NAME = /^(?:@[a-z0-9-][a-z0-9._-]*\/)?(?!node_modules$|favicon\.ico$)[a-z0-9-][a-z0-9._-]*$/

export const VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/

const SET_ID = /^(?:[0-9a-z]+-[0-9a-f]{8})?$/

/** Names that are reserved for svc. */
export const isOurs = (name: string): boolean => name === 'svc' || name.startsWith('@svc/')

export const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)

/** The file of a tarball in the set, unique for each plugin. */
export const tarballName = (name: string, version: string): string => `${name.replace('/', '+')}-${version}.tgz`

/** The name of the lock, and of the layer of the configuration that svc reads from it. */
export const LOCK_NAME = 'svc-plugins.lock'
/** `<home>/svc-plugins.lock`. */
export const lockFile = (home: string): string => join(home, LOCK_NAME)

export const EMPTY: Lock = { version: 1, set: '', plugins: [], dependencies: { files: '', stamp: '' } }

const closed = (properties: Record<string, object>, optional: readonly string[] = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(key => !optional.includes(key)),
  additionalProperties: false,
})
const text = { type: 'string' }
const flag = { type: 'boolean' }
const texts = { type: 'array', items: { type: 'string', minLength: 1 } }
const hash = { type: 'string', pattern: '^([0-9a-f]{64})?$' }
const permissions = {
  network: texts,
  env: texts,
  optional_env: texts,
  read: texts,
  write: texts,
  services: texts,
  tools: texts,
  providers: texts,
  spaces: texts,
  hooks: texts,
  secrets: texts,
  server: texts,
  public_routes: texts,
  credential_headers: texts,
  console: texts,
}
const VALUES = { network: texts, env: texts, read: texts, write: texts }
const plugin = {
  name: { type: 'string', pattern: NAME.source },
  version: { type: 'string', pattern: VERSION.source },
  origin: closed({ kind: { enum: ['registry', 'folder', 'tarball', 'link'] }, spec: text }),
  integrity: { type: 'string', pattern: '^(sha512-[A-Za-z0-9+/]{86}==)?$' },
  files: hash,
  isolation: { enum: ['process', 'in-process', 'quickjs', 'data'] },
  enabled: flag,
  permissions: closed(permissions, Object.keys(permissions)),
  values: closed(VALUES, Object.keys(VALUES)),
  scripts: flag,
  trusted: flag,
  declares: {},
  commands: { type: 'object' },
}
const lock = {
  version: { enum: [1] },
  set: { type: 'string', pattern: SET_ID.source },
  former: { type: 'string', pattern: SET_ID.source },
  plugins: { type: 'array', items: closed(plugin, ['values', 'declares', 'commands']) },
  dependencies: closed({ files: hash, stamp: hash }),
}
const lockSchema = schema<WrittenLock>(closed({ ...lock, before: closed(lock, ['former']) }, ['former', 'before']))

/** The file. During a trial it also contains the former lock. */
interface WrittenLock extends Lock {
  readonly before?: Lock
}

/**
 * The plugins installed in this home; an empty lock if there are none. A change on trial counts only while its process lives.
 * Throws LOCK_INVALID.
 */
export async function readLock(home: string): Promise<Lock> {
  const { before, ...tried } = writtenLock(home)
  return before === undefined || (await isHeld(home)) ? tried : before
}

/** Whether a process was killed during the trial of its change. The change does not count, and the next one removes it. */
export async function isAbandoned(home: string): Promise<boolean> {
  return writtenLock(home).before !== undefined && !(await isHeld(home))
}

/** The lock on trial, for the process that tries it; otherwise the lock in effect. Throws LOCK_INVALID. */
export function triedLock(home: string): Lock {
  const { before: _former, ...tried } = writtenLock(home)
  return tried
}

/** The lock in effect, for the holder of the plugins; removes an abandoned change first. Throws LOCK_INVALID. */
export async function settledLock(home: string): Promise<Lock> {
  const { before, ...tried } = writtenLock(home)
  if (before === undefined) return tried
  await writeLock(home, before)
  return before
}

/**
 * Puts a lock in effect. `holds` tries it: if it resolves with false, throws, or this process is killed, the former lock is in
 * effect. Returns the lock in effect.
 */
export async function putInForce(home: string, before: Lock, next: Lock, holds?: () => Promise<boolean>): Promise<Lock> {
  if (holds === undefined) {
    await writeLock(home, next)
    return next
  }
  await writeLock(home, { ...next, before })
  let last = before
  try {
    if (await holds()) last = next
  } finally {
    await writeLock(home, last)
  }
  return last
}

function writtenLock(home: string): WrittenLock {
  // synchronous: the thread pool would take ten times as long for one small file at each start
  if (!existsSync(lockFile(home))) return EMPTY
  return checkedLock(parsed(textOf(lockFile(home))))
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw lockInvalid(`it cannot be read: ${codeOf(error)}`)
  }
}

function parsed(written: string): unknown {
  try {
    return JSON.parse(written)
  } catch (error) {
    throw lockInvalid(`it is not valid JSON: ${messageOf(error)}`)
  }
}

/** Throws LOCK_INVALID. */
export function checkedLock(value: unknown): WrittenLock {
  const [problem] = lockSchema.check(value)
  if (problem) throw lockInvalid(`${problem.path || 'it'} ${problem.message}`)
  const written = value as WrittenLock
  if (written.before) checkPlugins(written.before)
  checkPlugins(written)
  return written
}

function checkPlugins(lock: Lock): void {
  const names = new Set(lock.plugins.map(item => item.name))
  if (names.size < lock.plugins.length) throw lockInvalid('it names a plugin twice')
  if (lock.set === '' && lock.plugins.some(needsSet)) throw lockInvalid('it names no set for its plugins')
}

/** A link stays in its folder. */
export const needsSet = ({ origin }: Lock['plugins'][number]): boolean => origin.kind !== 'link'

/**
 * The folder of the set in effect, `<home>/plugins/sets/<id>`; undefined if the lock names none. Names of plugins, except
 * links, are resolved from it.
 */
export const setFolder = (home: string, lock: Lock): string | undefined =>
  lock.set === '' ? undefined : join(setsOf(home), lock.set)

export const setsOf = (home: string): string => join(home, 'plugins', 'sets')

/** Keys in a fixed order. */
const KEYS = ['version', 'set', 'former', 'plugins', 'dependencies', 'before'] as const

/** Writes the lock in one atomic step, synced to disk. An empty lock removes the file. */
async function writeLock(home: string, lock: WrittenLock): Promise<void> {
  const file = lockFile(home)
  if (lock.plugins.length === 0 && lock.before === undefined) await rm(file, { force: true })
  else await replaceFile(file, `${JSON.stringify(sorted(lock), null, 2)}\n`)
  await syncFolder(home)
}

const sorted = (lock: WrittenLock) => Object.fromEntries(KEYS.flatMap(key => (lock[key] === undefined ? [] : [[key, lock[key]]])))

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}

/** The folder of an installed plugin. */
export const pluginFolder = (home: string, lock: Lock, { name, origin }: LockedPlugin): string =>
  origin.kind === 'link' ? origin.spec : join(setFolder(home, lock) ?? '', 'node_modules', name)

/**
 * How a plugin runs: in its own process, in the process of svc, or in the JavaScript sandbox. `data` has no code: another
 * plugin reads it (a vertical).
 */
export type IsolationMode = 'process' | 'in-process' | 'quickjs' | 'data'

export type Permissions = NonNullable<Manifest['permissions']>

/** The origin of a plugin. `spec` is the user's word, with absolute paths and without credentials. */
export interface Origin {
  readonly kind: 'registry' | 'folder' | 'tarball' | 'link'
  readonly spec: string
}

/** The entry of an installed plugin in the lock. */
export interface LockedPlugin {
  readonly name: string
  readonly version: string
  readonly origin: Origin
  /** `sha512-…` of its tarball; '' for a link. */
  readonly integrity: string
  /** SHA-256 in hex over path and content of its own files; '' for a link. */
  readonly files: string
  readonly isolation: IsolationMode
  readonly enabled: boolean
  /** The accepted permissions, whatever its manifest says later. */
  readonly permissions: Permissions
  /** The accepted values of settings to which the permissions refer: `{ network: ['db.internal:5432'] }`. */
  readonly values?: PermissionValues
  /** The user allowed its install scripts. */
  readonly scripts: boolean
  /** The user passed `--trust`. */
  readonly trusted: boolean
  /** The declarations of its module, from its run in the sandbox at the installation. Valid as long as `files` is. */
  readonly declares?: unknown
  /** The facts of its commands for help and completion, from the installation. Valid as long as `files` is. */
  readonly commands?: unknown
}

/** The installed plugins: `svc-plugins.lock`. */
export interface Lock {
  readonly version: 1
  /** Folder name of the set in effect; '' if no plugin needs one. */
  readonly set: string
  /** The former set, which old workers may still read. */
  readonly former?: string
  /** Sorted by name. */
  readonly plugins: readonly LockedPlugin[]
  readonly dependencies: {
    /** SHA-256 in hex over path and content of everything in node_modules except the plugins' own files. */
    readonly files: string
    /** The same over path, size and times: if it matches, svc does not read the content. */
    readonly stamp: string
  }
}
