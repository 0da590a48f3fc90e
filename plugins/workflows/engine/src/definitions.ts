import type { SlotView } from '@svc/core'
import type { Json, StoreOp, WorkflowDefinition, WorkflowNode } from '@svc/core/contracts'
import { nodesWithin } from '@svc/workflow-lang'
import { LRUCache } from 'lru-cache'
import { digestOf, type WorkflowLibrary } from './library.ts'
import type { Loader } from './loader.ts'
import { DEFINITIONS, type StoredDefinition } from './space.ts'

export interface DefinitionsOptions {
  readonly library: WorkflowLibrary
  readonly loader: Loader
  readonly types: SlotView<WorkflowNode>
}

/** A stored definition that is in use is written again after this time. Maintenance deletes definitions that were not written for long. */
export const TOUCH_MS = 86_400_000
const KEPT = 1_000

/** Stores the definitions of runs, each once, by digest. */
export class Definitions {
  readonly #parts: DefinitionsOptions
  /** Digests of stored definitions, with the time of the last write. */
  readonly #stored = new LRUCache<string, number>({ max: KEPT })
  /** Cached workflow names in definitions. Cleared when the node types change. */
  #named = new WeakMap<WorkflowDefinition, readonly string[]>()
  #version = -1

  constructor(parts: DefinitionsOptions) {
    this.#parts = parts
  }

  /** The current definitions of a workflow and of all its subworkflows. Throws WORKFLOW_UNKNOWN, WORKFLOW_INVALID. */
  async within(definition: WorkflowDefinition): Promise<ReadonlyMap<string, WorkflowDefinition>> {
    const found = new Map([[definition.name, definition]])
    for (const item of found.values())
      for (const name of this.#namedIn(item))
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

  /** Store operations for the definitions that are not stored yet. */
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

  /** Remembers which definitions are stored. */
  know(ops: readonly StoreOp[]): void {
    for (const op of ops) if (op.op === 'put' && op.collection === DEFINITIONS) this.#stored.set(op.key, Date.now())
  }
}
