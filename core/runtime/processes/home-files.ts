import { createHash, randomUUID } from 'node:crypto'
import { appendFile, constants, mkdir, open, rename, rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, isTree, svcError } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import type * as Yaml from 'yaml'
import type { Document } from 'yaml'

/** SQLite: another connection has the lock. */
const BUSY = 5
const LOOK_MS = 15

/**
 * Locks a file against other processes, and other holders in this one, through SQLite, because Node has no lock of the operating
 * system. The lock ends with its process. `waitMs` limits the wait for another holder. Throws the error of SQLite, with `errcode`.
 * Lock an empty file that nothing else opens, because closing it elsewhere in this process ends the lock. Never delete it: two
 * processes could then lock two files of this name.
 */
export async function holdFile(file: string, waitMs: number): Promise<Disposable> {
  // SQLite waits without returning to the event loop: a holder in this process could never release its lock
  for (const until = performance.now() + waitMs; ; ) {
    try {
      return await tryHold(file)
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== BUSY || performance.now() >= until) throw error
      await sleep(LOOK_MS)
    }
  }
}

async function tryHold(file: string): Promise<Disposable> {
  const { DatabaseSync } = await import('node:sqlite')
  const lock = new DatabaseSync(file, { timeout: 0 })
  try {
    // nothing is written, so it needs no journal file
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw error
  }
}

/** Replaces a file in one step, so that no reader sees a part of the text. By default only the owner of the new file can read it. */
export async function replaceFile(file: string, text: string, mode = 0o600): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${randomUUID()}`
  try {
    await using handle = await open(next, 'wx', mode)
    await handle.writeFile(text)
    await handle.sync()
    await rename(next, file)
  } catch (error) {
    await rm(next, { force: true })
    throw error
  }
}

/** A text file and its version, which differs after each change. Without a file, the text is absent. */
export interface VersionedText {
  readonly text?: string
  readonly version: string
}

const LARGEST = 4 * 1024 * 1024

/** Reads a text file with its version. A link is not followed. Throws the error of the system, and FILE_TOO_LARGE. */
export async function readVersioned(file: string): Promise<VersionedText> {
  try {
    await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { size, mtimeNs, ino } = await handle.stat({ bigint: true })
    if (size > LARGEST) throw svcError('FILE_TOO_LARGE', 'the file is too large to be changed here')
    const text = await handle.readFile('utf8')
    // the time keeps others from guessing the content, such as a password, by its version
    const version = createHash('sha256').update(`${mtimeNs}/${ino}/${text}`).digest('hex').slice(0, 32)
    return { text, version }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { version: 'none' }
    throw error
  }
}

interface FileChange {
  /** The expected version of the file. Absent: any. */
  readonly ifVersion?: string | undefined
  /** The text of a file that does not exist yet. */
  readonly first?: string
  /** Checks both texts before the file is written. It can throw. */
  readonly accept?: (before: string, after: string) => Promise<void>
}

export interface YamlChange extends FileChange {
  /** A JSON Merge Patch (RFC 7396): null removes a key. */
  readonly values: { readonly [key: string]: Json | undefined }
}

export interface DocumentChange extends FileChange {
  /** Changes the document. It runs under the lock, and can throw. */
  readonly change: (document: Document, yaml: typeof Yaml) => void | Promise<void>
}

/** Milliseconds to wait for another process that changes the file. */
const WAIT_MS = 10_000

/**
 * Changes keys of a YAML file under a lock and replaces it in one step. Comments and other keys stay. Throws PRECONDITION_FAILED
 * (`details: {version}`), and YAML_ALIASED when a value belongs to an anchor or alias.
 */
export const changeYaml = (file: string, { values, ...how }: YamlChange): Promise<VersionedText> =>
  changeDocument(file, { ...how, change: document => patch(document, values, []) })

/** Changes the document of a YAML file, as `changeYaml`. */
export function changeDocument(file: string, change: DocumentChange): Promise<VersionedText> {
  const mine = (turns.get(file) ?? Promise.resolve()).then(() => changeNow(file, change))
  const ended = mine.then(
    () => {},
    () => {}
  )
  turns.set(file, ended)
  void ended.then(() => turns.get(file) === ended && turns.delete(file))
  return mine
}

/** One change after the other in this process: when it closes any handle of a file, the system drops its locks of that file. */
const turns = new Map<string, Promise<void>>()

async function changeNow(file: string, { ifVersion, first = '', change, accept }: DocumentChange): Promise<VersionedText> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  // the empty file of the lock stays: if it were removed, two processes could lock two files of this name
  await appendFile(`${file}.lock`, '', { mode: 0o600 })
  using _lock = await lockPatiently(`${file}.lock`)
  const { text: before = first, version } = await readVersioned(file)
  if (ifVersion !== undefined && ifVersion !== version) throw versionStale(version)
  const after = await changedText(before, change)
  await accept?.(before, after)
  await replaceFile(file, after)
  return await readVersioned(file)
}

/** Throws UNAVAILABLE while another process holds the lock. */
async function lockPatiently(file: string): Promise<Disposable> {
  try {
    return await holdFile(file, WAIT_MS)
  } catch (error) {
    throw (error as { errcode?: number }).errcode === BUSY ? fileBusy(file) : error
  }
}

const fileBusy = (lock: string) =>
  svcError('UNAVAILABLE', `another process is changing ${basename(lock, '.lock')}; try again later`, {
    details: { retryAfterMs: 1_000 },
  })

const versionStale = (version: string) =>
  svcError('PRECONDITION_FAILED', 'the file was changed since it was read', {
    details: { version },
    hint: 'Read it again, and repeat the change',
  })

/** The text of a YAML file after a change, without the file. Throws YAML_INVALID, YAML_ALIASED. */
export const patchedText = (text: string, values: YamlChange['values']): Promise<string> =>
  changedText(text, document => patch(document, values, []))

async function changedText(text: string, change: DocumentChange['change']): Promise<string> {
  const yaml = await import('yaml')
  const document = yaml.parseDocument(text)
  const [error] = document.errors
  if (error) throw svcError('YAML_INVALID', 'the file has errors', { details: { reason: error.message.split('\n')[0] } })
  await change(document, yaml)
  // another parser would read some plain texts as a time or a number
  return document.toString({ lineWidth: 0, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' })
}

async function patch(document: Document, values: YamlChange['values'], keys: readonly string[]): Promise<void> {
  const { isAlias, isMap, isScalar } = await import('yaml')
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) continue
    const path = [...keys, key]
    const node = document.getIn(path, true)
    if (isAlias(node) || (isMap(node) && node.anchor !== undefined)) throw aliased(path)
    if (value === null) document.deleteIn(path)
    else if (isTree(value) && isMap(node)) await patch(document, value as YamlChange['values'], path)
    else if (isScalar(node) && typeof value !== 'object') {
      node.value = value
      if (typeof value === 'string' && node.type === 'PLAIN') node.type = 'QUOTE_DOUBLE'
    } else document.setIn(path, document.createNode(withoutNulls(value)))
  }
}

const aliased = (path: readonly string[]) =>
  svcError('YAML_ALIASED', `${path.join('.')} is an anchor or alias, which can be changed only in the file`, {
    details: { path: path.join('.') },
    hint: 'Edit the file on the machine of the server',
  })

/** A new tree of a merge patch: nothing is there that null could remove. */
const withoutNulls = (value: Json): Json =>
  isTree(value)
    ? Object.fromEntries(
        Object.entries(value as YamlChange['values']).flatMap(([key, item]) =>
          item === null || item === undefined ? [] : [[key, withoutNulls(item)]]
        )
      )
    : value
