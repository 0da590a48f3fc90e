import { createHash } from 'node:crypto'
import { basename, extname } from 'node:path'
import type { SlotView } from '@svc/core'
import type { WorkflowDefinition, WorkflowInfo, WorkflowProblem } from '@svc/core/contracts'
import { nodesWithin, plainDefinition } from '@svc/workflow-lang'
import type { Checker } from './checker.ts'
import { workflowInvalid, workflowUnknown } from './errors.ts'
import type { Found, Roots } from './workflow-files.ts'

/** A file is found by its name, so that is what its workflow is called. */
const nameOf = (source: string) => basename(source, extname(source))

/** Whether what a file of code exports may be a definition. */
const isNamed = (value: unknown): value is WorkflowDefinition =>
  typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'

const isPath = (workflow: string) => /[/\\]|\.(ya?ml|json|m?[jt]s)$/.test(workflow)

/** The definitions that files hold, for those that name them: nothing is said of what is wrong with them. */
class FileDefinitions {
  #byName: ReadonlyMap<string, Found> = new Map()
  readonly #read = new WeakMap<Found, WorkflowDefinition>()

  /** Takes all files as they are now; answers whether one is another than before. */
  take(files: readonly Found[]): boolean {
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

/** A workflow that there is, with what is wrong with it. */
export interface Known {
  readonly name: string
  readonly source: string
  readonly file?: string
  readonly definition: WorkflowDefinition
  readonly problems: readonly WorkflowProblem[]
}

export interface LibraryParts {
  readonly slot: SlotView<WorkflowDefinition>
  readonly roots: Roots
  readonly checker: Checker
}

/** The source of what is written for one run only. */
const CALLER = 'the caller'
/** So many looks at definitions are remembered. */
const KEPT = 500

/** All workflows there are: those of plugins, and the files below the roots as they are now. */
export class Library {
  readonly #parts: LibraryParts
  /** What was found of a text or a definition, while nothing it may name has changed. */
  readonly #looked = new Map<string, Known>()
  /** The same by the very object, so that a known workflow is found at no cost. */
  #same = new WeakMap<object, Known>()
  #version = ''
  /** Names of files, and how often they have changed; nobody has looked for them yet. */
  #files: ReadonlyMap<string, unknown> | undefined
  /** What definitions are held against that name others. */
  readonly #others = new FileDefinitions()
  #reading: Promise<unknown> = Promise.resolve()
  #turn = 0

  constructor(parts: LibraryParts) {
    this.#parts = parts
  }

  /** Those that can be told by name; of two with one name the file wins, of two files the first. */
  async all(): Promise<readonly Known[]> {
    await this.look()
    const files = await this.#read()
    const own = files.map(found => this.#ofFile(found))
    const names = new Set(own.map(({ name }) => name))
    const given = [...this.#parts.slot.entries()].filter(([name]) => !names.has(name)).map(entry => this.#ofSlot(entry))
    return [...own, ...given].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** One by its name or its path. Throws WORKFLOW_UNKNOWN, INVALID_VALUE. */
  async find(workflow: string): Promise<Known> {
    await this.look()
    const known = await this.#named(workflow)
    if (known.problems.length === 0) return known
    // what it names may be fixed by now
    await this.#read()
    return this.#named(workflow)
  }

  async #named(workflow: string): Promise<Known> {
    if (isPath(workflow)) return this.#ofFile(await this.#parts.roots.file(workflow))
    const file = await this.#parts.roots.named(workflow)
    if (file) return this.#ofFile(file)
    const given = this.#parts.slot.get(workflow)
    if (given) return this.#ofSlot([workflow, given])
    throw workflowUnknown(
      workflow,
      (await this.all()).map(({ name }) => name)
    )
  }

  /** The same, and it can run. Throws WORKFLOW_INVALID besides. */
  async ready(workflow: string): Promise<Known> {
    const known = await this.find(workflow)
    if (known.problems.length > 0) throw workflowInvalid(known.name, known.problems)
    return known
  }

  /** Whether a plugin or a file has this name, as far as was looked. */
  isNamed(workflow: string): boolean {
    return (
      this.#parts.slot.has(workflow) || this.#looked.values().some(({ name, source }) => name === workflow && source !== CALLER)
    )
  }

  /** One that was written for this run only. Throws WORKFLOW_INVALID. */
  async made(definition: WorkflowDefinition): Promise<Known> {
    await this.look()
    const look = () => this.#ofDefinition(definition.name, CALLER, definition)
    if (look().problems.length > 0) await this.#read()
    const known = look()
    if (known.problems.length > 0) throw workflowInvalid(known.name, known.problems)
    return known
  }

  /** Looks which files there are: what definitions name is held against them until the next look. */
  async look(): Promise<void> {
    const files = await this.#parts.roots.names()
    if (files !== this.#files) {
      this.#files = files
      this.#turn += 1
      this.#reading = this.#read()
    }
    await this.#reading
  }

  async #read(): Promise<readonly Found[]> {
    const files = await this.#parts.roots.files()
    if (this.#others.take(files)) this.#turn += 1
    return files
  }

  /** Whether a name can be run; as long as nobody has looked for files, any may be one. */
  isThere(workflow: string): boolean {
    return this.#parts.slot.has(workflow) || (this.#files?.has(workflow) ?? true)
  }
  /** The names that can be run, as far as was looked. */
  names(): string[] {
    return [...new Set([...(this.#files?.keys() ?? []), ...this.#parts.slot.names()])]
  }
  /** A workflow, as it was when files were read last. */
  definitionOf(workflow: string): WorkflowDefinition | undefined {
    return this.#others.get(workflow) ?? this.#parts.slot.get(workflow)
  }

  #ofFile(found: Found): Known {
    const { source, file, text, code } = found
    if (code) return this.#again(found, () => ({ ...this.#ofCode(source, code), file }))
    return this.#again(found, () =>
      this.#once(`${file}\n${text}`, () => {
        const { definition, problems } = this.#parts.checker.text(text, source)
        return { name: nameOf(source), source, file, definition, problems }
      })
    )
  }

  #ofCode(source: string, code: NonNullable<Found['code']>): Known {
    const name = nameOf(source)
    const what = 'failure' in code ? `cannot be imported: ${code.failure}` : 'exports no workflow as its default'
    if (!('definition' in code) || !isNamed(code.definition)) {
      const problems = [{ message: what, path: '', hint: 'export default { name, nodes } satisfies WorkflowDefinition' }]
      return { name, source, definition: { name, nodes: {} }, problems }
    }
    const known = this.#ofDefinition(name, source, code.definition)
    if (code.definition.name === name) return known
    const problem = { message: `must be "${name}", as its file is called`, path: 'name', hint: 'call both the same' }
    return { ...known, problems: [problem, ...known.problems] }
  }

  /** As it was when it was first looked at. */
  #ofSlot([name, definition]: readonly [string, WorkflowDefinition]): Known {
    const look = () => this.#ofDefinition(name, this.#parts.slot.owner?.(name) ?? 'a plugin', definition)
    const known = this.#again(definition, look)
    return known.name === name ? known : look()
  }

  #again(given: object, look: () => Known): Known {
    this.#forget()
    const known = this.#same.get(given) ?? look()
    this.#same.set(given, known)
    return known
  }

  /** A copy: what callers and plugins give may change under us. */
  #ofDefinition(name: string, source: string, given: WorkflowDefinition): Known {
    const text = JSON.stringify(given)
    return this.#once(`${source}\n${text}`, () => {
      const definition = JSON.parse(text) as WorkflowDefinition
      return { name, source, definition, problems: this.#parts.checker.definition(definition) }
    })
  }

  #once(key: string, look: () => Known): Known {
    this.#forget()
    if (this.#looked.size > KEPT) this.#looked.clear()
    const known = this.#looked.get(key) ?? look()
    this.#looked.set(key, known)
    return known
  }

  /** What definitions may name comes and goes. */
  #forget(): void {
    const version = `${this.#parts.checker.version()}/${this.#turn}`
    if (version === this.#version) return
    this.#version = version
    this.#looked.clear()
    this.#same = new WeakMap()
  }
}

export const infoOf = ({ name, source, file, definition, problems }: Known): WorkflowInfo => ({
  name,
  ...(definition.description === undefined ? {} : { description: definition.description }),
  ...(definition.version === undefined ? {} : { version: definition.version }),
  source,
  ...(file === undefined ? {} : { file }),
  nodes: problems.length > 0 ? 0 : [...nodesWithin(definition)].length,
  ...(problems.length > 0 ? { problems } : {}),
})

const digests = new WeakMap<WorkflowDefinition, string>()

/** What a definition is known by: two that are equal are stored once. */
export function digestOf(definition: WorkflowDefinition): string {
  const there = digests.get(definition)
  if (there !== undefined) return there
  const made = createHash('sha256').update(JSON.stringify(definition)).digest('base64url')
  digests.set(definition, made)
  return made
}
