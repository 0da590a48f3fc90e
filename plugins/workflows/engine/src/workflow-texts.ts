import { createHash } from 'node:crypto'
import { lstat, mkdir, readFile, realpath } from 'node:fs/promises'
import { dirname, extname, join, sep } from 'node:path'
import { codeOf } from '@svc/core'
import type { WorkflowSave, WorkflowText } from '@svc/core/contracts'
import { holdFile, replaceFile } from '@svc/runtime/home-files'
import { WORKFLOW_NAME } from '@svc/workflow-lang'
import type { Checker } from './checker.ts'
import { fileRefused, filesBusy, invalid, versionStale, workflowInvalid } from './errors.ts'
import { infoOf, type WorkflowLibrary } from './library.ts'
import { CODE, LARGEST, type ListedFile, type WorkflowRoots } from './workflow-files.ts'

export interface WorkflowTextsOptions {
  readonly roots: WorkflowRoots
  readonly library: WorkflowLibrary
  readonly checker: Checker
  /** The folder of new files. */
  readonly home: string
}

const NAME = new RegExp(WORKFLOW_NAME)
const LOCK = '.lock'
/** Milliseconds to wait for another change. */
const WAIT_MS = 10_000

/** Reads and writes the texts of workflows. Code is never written, nor anything outside of the roots. */
export class WorkflowTexts {
  readonly #parts: WorkflowTextsOptions

  constructor(parts: WorkflowTextsOptions) {
    this.#parts = parts
  }

  /** Throws WORKFLOW_UNKNOWN, INVALID_VALUE. */
  async source(workflow: string): Promise<WorkflowText> {
    const { library, roots } = this.#parts
    const known = await library.find(workflow)
    const info = infoOf(known)
    if (known.file === undefined) {
      const text = JSON.stringify(known.definition, null, 2)
      return { info, text, format: 'json', version: versionOf(text), writable: false }
    }
    const { text, code, file } = await roots.file(known.file)
    if (code) return { info, format: 'code', version: '', writable: false }
    const place = await roots.place(known.name)
    const writable = place?.path === file && (await problemOf(place)) === undefined
    return { info, text, format: formatOf(file), version: versionOf(text), writable }
  }

  /** Throws INVALID_VALUE, WORKFLOW_INVALID, FORBIDDEN, PRECONDITION_FAILED, UNAVAILABLE. */
  async save({ workflow: name, text, replaces }: WorkflowSave): Promise<WorkflowText> {
    const { roots, home } = this.#parts
    if (!NAME.test(name)) throw invalid('workflow', 'must be a name: letters a to z, digits, _ and -, at most 64')
    if (Buffer.byteLength(text) > LARGEST) throw invalid('text', `is longer than ${LARGEST} bytes`)
    await mkdir(home, { recursive: true, mode: 0o700 })
    using _lock = await lockFor(join(home, LOCK))
    const place = await roots.place(name)
    const target = place?.path ?? join(home, `${name}.yaml`)
    const problem = place ? await problemOf(place) : await problemOfNew(target)
    if (problem !== undefined) throw fileRefused(name, problem)
    await this.#check(name, target, text)
    const before = place && (await readFile(target, 'utf8'))
    if (!isReplaced(before, replaces)) throw versionStale(name)
    await replaceFile(target, text, place ? (await lstat(target)).mode & 0o777 : 0o600)
    return await this.source(name)
  }

  async #check(name: string, target: string, text: string): Promise<void> {
    if (formatOf(target) === 'json') checkJson(text)
    await this.#parts.library.look()
    const { problems } = this.#parts.checker.text(text, `${name}${extname(target)}`)
    if (problems.length > 0) throw workflowInvalid(name, problems)
  }
}

/** Whether a change is meant for this text. */
const isReplaced = (text: string | undefined, replaces: string) =>
  text === undefined ? replaces === 'new' : replaces === 'any' || replaces === versionOf(text)

const formatOf = (file: string) => (extname(file) === '.json' ? 'json' : 'yaml')

const versionOf = (text: string) => createHash('sha256').update(text).digest('base64url')

function checkJson(text: string): void {
  try {
    JSON.parse(text)
  } catch {
    throw invalid('text', 'must be JSON, because the file of this workflow is JSON')
  }
}

/** Why a file cannot be replaced. */
async function problemOf({ path, root, code }: ListedFile): Promise<string | undefined> {
  if (CODE.has(extname(path))) return 'its file is code'
  if (code) return 'its file is in a folder of workflows.code'
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isFile()) return found?.isSymbolicLink() ? 'its file is a link' : 'its file cannot be read'
  if (found.size > LARGEST) return `its file is larger than ${LARGEST} bytes`
  const [base, folder] = await Promise.all([realpath(root), realpath(dirname(path))])
  return folder === base || folder.startsWith(base + sep) ? undefined : 'its file is outside of the workflow roots'
}

/** Why a file cannot be created: a link or a folder that no list shows can have its name. */
async function problemOfNew(target: string): Promise<string | undefined> {
  try {
    await lstat(target)
    return 'something else has the name of its file'
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

async function lockFor(path: string): Promise<Disposable> {
  const found = await lstat(path).catch(() => undefined)
  if (found && !found.isFile()) throw fileRefused(LOCK, 'the lock of the folder is not a file')
  return holdFile(path, WAIT_MS).catch((error: unknown) => {
    throw filesBusy(error)
  })
}
