import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, type Manifest, messageOf, schema } from '@svc/core'
import { lockInvalid } from './errors.ts'
import { isHeld } from './hold.ts'

/** What npm takes as a name today; nothing that leads out of a folder. */
export const NAME = /^(?:@[a-z0-9-][a-z0-9._-]*\/)?(?!node_modules$|favicon\.ico$)[a-z0-9-][a-z0-9._-]*$/

export const VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/

const SET_ID = /^(?:[0-9a-z]+-[0-9a-f]{8})?$/

/** Names of what comes with svc. */
export const isOurs = (name: string): boolean => name === 'svc' || name.startsWith('@svc/')

export const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)

/** A tarball's file in the set: no two plugins have the same. */
export const tarballName = (name: string, version: string): string => `${name.replace('/', '+')}-${version}.tgz`

/** `<home>/svc-plugins.lock`. */
export const lockFile = (home: string): string => join(home, 'svc-plugins.lock')

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
  read: texts,
  write: texts,
  services: texts,
  hooks: texts,
  public_routes: texts,
  credential_headers: texts,
}
const plugin = {
  name: { type: 'string', pattern: NAME.source },
  version: { type: 'string', pattern: VERSION.source },
  origin: closed({ kind: { enum: ['registry', 'folder', 'tarball', 'link'] }, spec: text }),
  integrity: { type: 'string', pattern: '^(sha512-[A-Za-z0-9+/]{86}==)?$' },
  files: hash,
  isolation: { enum: ['process', 'in-process', 'quickjs', 'data'] },
  enabled: flag,
  permissions: closed(permissions, Object.keys(permissions)),
  scripts: flag,
  trusted: flag,
  declares: {},
  commands: { type: 'object' },
}
const lock = {
  version: { enum: [1] },
  set: { type: 'string', pattern: SET_ID.source },
  former: { type: 'string', pattern: SET_ID.source },
  plugins: { type: 'array', items: closed(plugin, ['declares', 'commands']) },
  dependencies: closed({ files: hash, stamp: hash }),
}
const lockSchema = schema<WrittenLock>(closed({ ...lock, before: closed(lock, ['former']) }, ['former', 'before']))

/** The file: while a change is on trial, what was in force before it stands there too. */
interface WrittenLock extends Lock {
  readonly before?: Lock
}

/**
 * What is installed below this home; an empty lock where there is none. A change that is on trial counts as long as the process lives that tries it: else what was in force before.
 * Throws LOCK_INVALID.
 */
export async function readLock(home: string): Promise<Lock> {
  const { before, ...tried } = writtenLock(home)
  return before === undefined || (await isHeld(home)) ? tried : before
}

/** Whether a change was on trial when its process was killed: it does not count, and the next change takes it away. */
export async function isAbandoned(home: string): Promise<boolean> {
  return writtenLock(home).before !== undefined && !(await isHeld(home))
}

/** What is in force, for who holds the plugins: an abandoned change is taken away first. Throws LOCK_INVALID. */
export async function settledLock(home: string): Promise<Lock> {
  const { before, ...tried } = writtenLock(home)
  if (before === undefined) return tried
  await writeLock(home, before)
  return before
}

/** Where `holds` is given it tries what is new, and says whether it stays; killed meanwhile, or where it throws, what was before is in force. Returns what is in force then. */
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
  // one small file at each start: by way of the thread pool it takes ten times as long
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
    throw lockInvalid(`it is no JSON: ${messageOf(error)}`)
  }
}

/** Throws LOCK_INVALID. */
export function checkedLock(value: unknown): WrittenLock {
  const [fault] = lockSchema.check(value)
  if (fault) throw lockInvalid(`${fault.path || 'it'} ${fault.message}`)
  const written = value as WrittenLock
  if (written.before) checkPlugins(written.before)
  checkPlugins(written)
  return written
}

function checkPlugins(lock: Lock): void {
  const names = new Set(lock.plugins.map(one => one.name))
  if (names.size < lock.plugins.length) throw lockInvalid('it has a plugin twice')
  if (lock.set === '' && lock.plugins.some(needsSet)) throw lockInvalid('it names no set for its plugins')
}

/** A link lies where it is. */
export const needsSet = ({ origin }: Lock['plugins'][number]): boolean => origin.kind !== 'link'

/** The folder that the set in force is in: `<home>/plugins/sets/<id>`; undefined where the lock names none. Plugins (but links) are found from there by name. */
export const setFolder = (home: string, lock: Lock): string | undefined =>
  lock.set === '' ? undefined : join(setsOf(home), lock.set)

export const setsOf = (home: string): string => join(home, 'plugins', 'sets')

/** Keys in one order, independent of the writer. */
const KEYS = ['version', 'set', 'former', 'plugins', 'dependencies', 'before'] as const

/** Puts a lock in force, in one step that a power cut cannot halve; one without plugins is no file. */
async function writeLock(home: string, lock: WrittenLock): Promise<void> {
  const file = lockFile(home)
  if (lock.plugins.length === 0 && lock.before === undefined) await rm(file, { force: true })
  else await replace(file, `${JSON.stringify(sorted(lock), null, 2)}\n`)
  await syncFolder(home)
}

const sorted = (lock: WrittenLock) => Object.fromEntries(KEYS.flatMap(key => (lock[key] === undefined ? [] : [[key, lock[key]]])))

async function replace(file: string, written: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${randomUUID()}`
  try {
    await using handle = await open(next, 'wx', 0o600)
    await handle.writeFile(written)
    await handle.sync()
    await rename(next, file)
  } catch (error) {
    await rm(next, { force: true })
    throw error
  }
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}

/** Where the files of an installed plugin lie. */
export const pluginFolder = (home: string, lock: Lock, { name, origin }: LockedPlugin): string =>
  origin.kind === 'link' ? origin.spec : join(setFolder(home, lock) ?? '', 'node_modules', name)

/** Where a plugin's code runs: behind a wall of its own, in the host, in the JavaScript sandbox; or it has none that runs, and the plugin of its runtime reads it (a vertical). */
export type IsolationMode = 'process' | 'in-process' | 'quickjs' | 'data'

export type Permissions = NonNullable<Manifest['permissions']>

/** Where a plugin came from. `spec` is what the person wrote, a folder or file as an absolute path; it never holds credentials. */
export interface Origin {
  readonly kind: 'registry' | 'folder' | 'tarball' | 'link'
  readonly spec: string
}

/** One installed plugin, as the lock has it. */
export interface LockedPlugin {
  readonly name: string
  readonly version: string
  readonly origin: Origin
  /** `sha512-…` of its tarball; '' for a link. */
  readonly integrity: string
  /** SHA-256, in hex, over path and content of each of its own files; '' for a link. */
  readonly files: string
  readonly isolation: IsolationMode
  readonly enabled: boolean
  /** What the person accepted: this is in force, whatever its manifest says later. */
  readonly permissions: Permissions
  /** Its install scripts were allowed. */
  readonly scripts: boolean
  /** `--trust` was given. */
  readonly trusted: boolean
  /** What its module declares, learnt once in the sandbox at install; holds as long as `files` does. */
  readonly declares?: unknown
  /** What help and completion show of its commands, learnt once at install in a process of its own; holds as long as `files` does. */
  readonly commands?: unknown
}

/** What is installed: `svc-plugins.lock`. */
export interface Lock {
  readonly version: 1
  /** The set in force, a folder's name; '' where nothing that is installed needs one (nothing at all, or links only). */
  readonly set: string
  /** The set that was in force before: old workers may still read it, so it is kept. */
  readonly former?: string
  /** Sorted by name. */
  readonly plugins: readonly LockedPlugin[]
  readonly dependencies: {
    /** SHA-256, in hex, over path and content of everything in node_modules that is no plugin's own file. */
    readonly files: string
    /** The same over path, size and times: while it holds, the content is not read. */
    readonly stamp: string
  }
}
