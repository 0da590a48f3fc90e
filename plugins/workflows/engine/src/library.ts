import { createHash } from 'node:crypto'
import { basename, extname } from 'node:path'
import type { SlotView } from '@svc/core'
import type { WorkflowDefinition, WorkflowInfo, WorkflowProblem } from '@svc/core/contracts'
import { nodesWithin, plainDefinition } from '@svc/workflow-lang'
import { LRUCache } from 'lru-cache'
import type { Checker } from './checker.ts'
import { workflowInvalid, workflowUnknown } from './errors.ts'
import type { WorkflowFile, WorkflowRoots } from './workflow-files.ts'

/** A workflow has the name of its file. */
const nameOf = (source: string) => basename(source, extname(source))

/** Whether a default export can be a definition. */
const isNamed = (value: unknown): value is WorkflowDefinition =>
  typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'

const isPath = (workflow: string) => /[/\\]|\.(ya?ml|json|m?[jt]s)$/.test(workflow)

/** Unchecked definitions in files, for definitions that refer to them. */
class FileDefinitions {
  #byName: ReadonlyMap<string, WorkflowFile> = new Map()
  readonly #read = new WeakMap<WorkflowFile, WorkflowDefinition>()

  /** Takes the current files and returns whether any has changed. */
  take(files: readonly WorkflowFile[]): boolean {
    const former = this.#byName
    this.#byName = new Map(files.toReversed().map(found => [nameOf(found.source), found]))
    return former.size !== this.#byName.size || this.#byName.entries().some(([name, found]) => former.get(name) !== found)
  }

  get(name: string): WorkflowDefinition | undefined {
    const found = this.#byName.get(name)
    if (!found) return undefined
    if (found.code) return 'definition' in found.code && isNamed(found.code.definition) ? found.code.definition : undefined
    const known = this.#read.get(found) ?? plainDefinition(found.text, found.source)
    this.#read.set(found, known)
    return known
  }
}

/** A workflow with its problems. */
export interface LoadedWorkflow {
  readonly name: string
  readonly source: string
  readonly file?: string
  readonly definition: WorkflowDefinition
  readonly problems: readonly WorkflowProblem[]
}

export interface WorkflowLibraryOptions {
  readonly slot: SlotView<WorkflowDefinition>
  readonly roots: WorkflowRoots
  readonly checker: Checker
}

/** The source of a definition in a request. */
const CALLER = 'the caller'
/** Maximum number of cached checks. */
const KEPT = 500

/** All workflows: those of plugins, and the current files below the roots. */
export class WorkflowLibrary {
  readonly #parts: WorkflowLibraryOptions
  /** Results of checks, valid until a name changes that definitions can use. */
  readonly #looked = new LRUCache<string, LoadedWorkflow>({ max: KEPT })
  /** The same by object identity, which costs nothing to look up. */
  #same = new WeakMap<object, LoadedWorkflow>()
  #version = ''
  /** Names of files; undefined before the first look. */
  #files: ReadonlyMap<string, unknown> | undefined
  /** Definitions in files that other definitions can refer to. */
  readonly #others = new FileDefinitions()
  #reading: Promise<unknown> = Promise.resolve()
  #turn = 0

  constructor(parts: WorkflowLibraryOptions) {
    this.#parts = parts
  }

  /** All workflows by name. A file wins over a plugin, and the first file over later files. */
  async all(): Promise<readonly LoadedWorkflow[]> {
    const own = await this.files()
    const names = new Set(own.map(({ name }) => name))
    const given = [...this.#parts.slot.entries()].filter(([name]) => !names.has(name)).map(entry => this.#ofSlot(entry))
    return [...own, ...given].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** The workflows with a schedule. Those without are not checked, because the check of all would be a part of each start. */
  async scheduled(): Promise<readonly LoadedWorkflow[]> {
    await this.look()
    const files = await this.#read()
    const names = new Set(files.map(({ source }) => nameOf(source)))
    const given = [...this.#parts.slot.entries()].filter(([name, { schedule }]) => schedule !== undefined && !names.has(name))
    return [...files.filter(canBeScheduled).map(found => this.#ofFile(found)), ...given.map(entry => this.#ofSlot(entry))]
  }

  /** The workflows in files, in a fixed order. */
  async files(): Promise<readonly LoadedWorkflow[]> {
    await this.look()
    return (await this.#read()).map(found => this.#ofFile(found))
  }

  /** Finds a workflow by name or path. Throws WORKFLOW_UNKNOWN, INVALID_VALUE. */
  async find(workflow: string): Promise<LoadedWorkflow> {
    await this.look()
    const known = await this.#named(workflow)
    if (known.problems.length === 0) return known
    // a workflow that it refers to can be fixed by now
    await this.#read()
    return this.#named(workflow)
  }

  async #named(workflow: string): Promise<LoadedWorkflow> {
    if (isPath(workflow)) return this.#ofFile(await this.#parts.roots.file(workflow))
    const file = await this.#parts.roots.named(workflow)
    if (file) return this.#ofFile(file)
    const given = this.#parts.slot.get(workflow)
    if (given) return this.#ofSlot([workflow, given])
    const all = await this.all()
    throw workflowUnknown(
      workflow,
      all.map(({ name }) => name),
      all.find(({ definition }) => definition.name === workflow)?.source
    )
  }

  /** Finds a workflow that has no problems. Throws WORKFLOW_INVALID besides. */
  async ready(workflow: string): Promise<LoadedWorkflow> {
    const known = await this.find(workflow)
    if (known.problems.length > 0) throw workflowInvalid(known.name, known.problems)
    return known
  }

  /** Whether a plugin or a file that was read has this name. */
  isNamed(workflow: string): boolean {
    return (
      this.#parts.slot.has(workflow) || this.#looked.values().some(({ name, source }) => name === workflow && source !== CALLER)
    )
  }

  /** A definition in a request. Throws WORKFLOW_INVALID. */
  async made(definition: WorkflowDefinition): Promise<LoadedWorkflow> {
    await this.look()
    const look = () => this.#ofDefinition(definition.name, CALLER, definition)
    if (look().problems.length > 0) await this.#read()
    const known = look()
    if (known.problems.length > 0) throw workflowInvalid(known.name, known.problems)
    return known
  }

  /** Reads the list of files. Definitions are checked against it until the next call. */
  async look(): Promise<void> {
    const files = await this.#parts.roots.names()
    if (files !== this.#files) {
      this.#files = files
      this.#turn += 1
      this.#reading = this.#read()
    }
    await this.#reading
  }

  async #read(): Promise<readonly WorkflowFile[]> {
    const files = await this.#parts.roots.files()
    if (this.#others.take(files)) this.#turn += 1
    return files
  }

  /** Whether a workflow of this name exists. Returns true before the first look at files. */
  isThere(workflow: string): boolean {
    return this.#parts.slot.has(workflow) || (this.#files?.has(workflow) ?? true)
  }
  /** The names of all workflows that were found. */
  names(): string[] {
    return [...new Set([...(this.#files?.keys() ?? []), ...this.#parts.slot.names()])]
  }
  /** A workflow as it was when the files were last read. */
  definitionOf(workflow: string): WorkflowDefinition | undefined {
    return this.#others.get(workflow) ?? this.#parts.slot.get(workflow)
  }

  #ofFile(found: WorkflowFile): LoadedWorkflow {
    const { source, file, text, code } = found
    if (code) return this.#again(found, () => ({ ...this.#ofCode(source, code), file }))
    return this.#again(found, () =>
      this.#once(`${file}\n${text}`, () => {
        const { definition, problems } = this.#parts.checker.text(text, source)
        return { name: nameOf(source), source, file, definition, problems }
      })
    )
  }

  #ofCode(source: string, code: NonNullable<WorkflowFile['code']>): LoadedWorkflow {
    const name = nameOf(source)
    const what = 'failure' in code ? `cannot be imported: ${code.failure}` : 'has no workflow as its default export'
    if (!('definition' in code) || !isNamed(code.definition)) {
      const problems = [{ message: what, path: '', hint: 'export default { name, nodes } satisfies WorkflowDefinition' }]
      return { name, source, definition: { name, nodes: {} }, problems }
    }
    const known = this.#ofDefinition(name, source, code.definition)
    if (code.definition.name === name) return known
    const problem = { message: `must be "${name}", the name of its file`, path: 'name', hint: 'Rename the workflow or the file' }
    return { ...known, problems: [problem, ...known.problems] }
  }

  /** The workflow as it was at the first look. */
  #ofSlot([name, definition]: readonly [string, WorkflowDefinition]): LoadedWorkflow {
    const look = () => this.#ofDefinition(name, this.#parts.slot.owner?.(name) ?? 'a plugin', definition)
    const known = this.#again(definition, look)
    return known.name === name ? known : look()
  }

  #again(given: object, look: () => LoadedWorkflow): LoadedWorkflow {
    this.#forget()
    const known = this.#same.get(given) ?? look()
    this.#same.set(given, known)
    return known
  }

  /** Checks a copy, because the caller or plugin can change its object later. */
  #ofDefinition(name: string, source: string, given: WorkflowDefinition): LoadedWorkflow {
    const text = JSON.stringify(given)
    return this.#once(`${source}\n${text}`, () => {
      const definition = JSON.parse(text) as WorkflowDefinition
      return { name, source, definition, problems: this.#parts.checker.definition(definition) }
    })
  }

  #once(key: string, look: () => LoadedWorkflow): LoadedWorkflow {
    this.#forget()
    const known = this.#looked.get(key) ?? look()
    this.#looked.set(key, known)
    return known
  }

  /** Clears the cache when a name has changed that definitions can use. */
  #forget(): void {
    const version = `${this.#parts.checker.version()}/${this.#turn}`
    if (version === this.#version) return
    this.#version = version
    this.#looked.clear()
    this.#same = new WeakMap()
  }
}

const canBeScheduled = ({ text, code }: WorkflowFile): boolean =>
  code ? 'definition' in code && Object(code.definition).schedule !== undefined : text.includes('schedule')

export const infoOf = ({ name, source, file, definition, problems }: LoadedWorkflow): WorkflowInfo => ({
  name,
  ...(definition.description === undefined ? {} : { description: definition.description }),
  ...(definition.version === undefined ? {} : { version: definition.version }),
  source,
  ...(file === undefined ? {} : { file }),
  nodes: problems.length > 0 ? 0 : [...nodesWithin(definition)].length,
  ...(problems.length > 0 ? { problems } : {}),
})

const digests = new WeakMap<WorkflowDefinition, string>()

/** The digest of a definition. Equal definitions are stored once. */
export function digestOf(definition: WorkflowDefinition): string {
  const there = digests.get(definition)
  if (there !== undefined) return there
  const made = createHash('sha256').update(JSON.stringify(definition)).digest('base64url')
  digests.set(definition, made)
  return made
}
