import { createHash } from 'node:crypto'
import type { SlotView } from '@svc/core'
import type { WorkflowDefinition, WorkflowInfo, WorkflowProblem } from '@svc/core/contracts'
import { nodesWithin } from '@svc/workflow'
import { workflowInvalid, workflowUnknown } from './errors.ts'
import type { Checker } from './checker.ts'
import type { Found, Roots } from './roots.ts'

/** A workflow that there is, with what is wrong with it. */
export interface Known {
  readonly name: string
  readonly source: string
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
  #version = ''

  constructor(parts: LibraryParts) {
    this.#parts = parts
  }

  /** Those that can be told by name; of two with one name the file wins, and both are told as a problem. */
  async all(): Promise<readonly Known[]> {
    const files = await this.#parts.roots.files()
    const own = files.map(found => this.#ofFile(found))
    const names = new Set(own.map(({ name }) => name))
    const given = [...this.#parts.slot.entries()].filter(([name]) => !names.has(name)).map(entry => this.#ofSlot(entry))
    return [...own, ...given].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** One by its name or its path. Throws WORKFLOW_UNKNOWN, INVALID_VALUE. */
  async find(workflow: string): Promise<Known> {
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
      this.#parts.slot.has(workflow) ||
      [...this.#looked.values()].some(({ name, source }) => name === workflow && source !== CALLER)
    )
  }

  /** One that was written for this run only. Throws WORKFLOW_INVALID. */
  made(definition: WorkflowDefinition): Known {
    const known = this.#ofDefinition(definition.name, CALLER, definition)
    if (known.problems.length > 0) throw workflowInvalid(known.name, known.problems)
    return known
  }

  #ofFile({ source, text }: Found): Known {
    return this.#once(`${source}\n${text}`, () => {
      const { definition, problems } = this.#parts.checker.text(text, source)
      return { name: definition.name, source, definition, problems }
    })
  }

  #ofSlot([name, definition]: readonly [string, WorkflowDefinition]): Known {
    return this.#ofDefinition(name, this.#parts.slot.owner?.(name) ?? 'a plugin', definition)
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
    const version = this.#parts.checker.version()
    if (version !== this.#version || this.#looked.size > KEPT) this.#looked.clear()
    this.#version = version
    const known = this.#looked.get(key) ?? look()
    this.#looked.set(key, known)
    return known
  }
}

const isPath = (workflow: string) => /[/\\]|\.(ya?ml|json|[cm]?[jt]s)$/.test(workflow)

export const infoOf = ({ name, source, definition, problems }: Known): WorkflowInfo => ({
  name,
  ...(definition.description === undefined ? {} : { description: definition.description }),
  ...(definition.version === undefined ? {} : { version: definition.version }),
  source,
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
