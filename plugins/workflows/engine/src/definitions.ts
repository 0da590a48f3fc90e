import type { SlotView } from '@svc/core'
import type { Json, StoreOp, WorkflowDefinition, WorkflowNode } from '@svc/core/contracts'
import { nodesWithin } from '@svc/workflow-lang'
import { digestOf, type Library } from './library.ts'
import type { Loader } from './loader.ts'
import { DEFINITIONS, type StoredDefinition } from './space.ts'

export interface DefinitionsParts {
  readonly library: Library
  readonly loader: Loader
  readonly types: SlotView<WorkflowNode>
}

/** What is in use is written again after so long: what was not for long is deleted. */
export const TOUCH_MS = 86_400_000
const KEPT = 1_000

/** The definitions that runs begin with: stored once each, by their digest. */
export class Definitions {
  readonly #parts: DefinitionsParts
  /** Digests that are known to be stored, and since when. */
  readonly #stored = new Map<string, number>()
  /** Workflows that definitions name, while the types of nodes are the same. */
  #named = new WeakMap<WorkflowDefinition, readonly string[]>()
  #version = -1

  constructor(parts: DefinitionsParts) {
    this.#parts = parts
  }

  /** A definition, and those of all workflows within, as they are now. Throws WORKFLOW_UNKNOWN, WORKFLOW_INVALID. */
  async within(definition: WorkflowDefinition): Promise<ReadonlyMap<string, WorkflowDefinition>> {
    const found = new Map([[definition.name, definition]])
    for (const one of found.values())
      for (const name of this.#namedIn(one))
        if (!found.has(name)) found.set(name, (await this.#parts.library.ready(name)).definition)
    return found
  }

  #namedIn(definition: WorkflowDefinition): readonly string[] {
    const { version } = this.#parts.types
    if (version !== this.#version) this.#named = new WeakMap()
    this.#version = version
    const names = this.#named.get(definition) ?? this.#look(definition)
    this.#named.set(definition, names)
    return names
  }

  #look(definition: WorkflowDefinition): string[] {
    return [...nodesWithin(definition)].flatMap(({ node }) =>
      Object.entries(this.#parts.types.get(node.type)?.names ?? {}).flatMap(([setting, kind]) => {
        const name = node[setting]
        return kind === 'workflow' && typeof name === 'string' && !name.includes('${{') ? [name] : []
      })
    )
  }

  /** What has to be stored with a run that begins with these. */
  ops(definitions: Iterable<WorkflowDefinition>): StoreOp[] {
    const at = Date.now()
    return [...definitions].flatMap(definition => {
      const digest = digestOf(definition)
      this.#parts.loader.know(digest, definition)
      if (at - (this.#stored.get(digest) ?? 0) < TOUCH_MS) return []
      const value: StoredDefinition = { definition, at }
      return [{ op: 'put' as const, collection: DEFINITIONS, key: digest, value: value as unknown as Json }]
    })
  }

  /** They have been stored. */
  know(ops: readonly StoreOp[]): void {
    if (this.#stored.size > KEPT) this.#stored.clear()
    for (const op of ops) if (op.op === 'put' && op.collection === DEFINITIONS) this.#stored.set(op.key, Date.now())
  }
}
