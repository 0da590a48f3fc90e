import { type CallContext, codeOf, type SlotView } from '@svc/core'
import type { Store, StoreRecord, WorkflowDefinition, WorkflowNode, WorkflowVersion } from '@svc/core/contracts'
import { nodesWithin } from '@svc/workflow-lang'
import { digestOf, type WorkflowLibrary } from './library.ts'
import { isSeen, seesAll } from './run-filter.ts'
import { DEFINITIONS, RUNS, type RunRecord, type StoredDefinition } from './space.ts'

export interface VersionsOptions {
  readonly store: Store
  readonly library: WorkflowLibrary
  readonly types: SlotView<WorkflowNode>
}

const PAGE = 200

/** Lists the versions of workflows: runs keep the definition that they began with. */
export class Versions {
  readonly #options: VersionsOptions

  constructor(options: VersionsOptions) {
    this.#options = options
  }

  /** Throws WORKFLOW_UNKNOWN if there is neither a definition nor a stored version. */
  async of(workflow: string, ctx: CallContext): Promise<readonly WorkflowVersion[]> {
    const current = await this.#options.library.find(workflow).catch(ignoreUnknown)
    const name = current?.name ?? workflow
    const open = await this.#open(name, ctx)
    const now = current && current.problems.length === 0 ? digestOf(current.definition) : undefined
    const found = new Map<string, WorkflowVersion>()
    const add = (digest: string, definition: WorkflowDefinition, lastUsed?: number) =>
      found.set(digest, {
        definition: digest,
        ...(definition.version === undefined ? {} : { version: definition.version }),
        isCurrent: digest === now,
        open: open.get(digest) ?? 0,
        ...(lastUsed === undefined ? {} : { lastUsed }),
        missing: this.#missingIn(definition),
      })
    if (now !== undefined) add(now, current!.definition)
    for await (const { key, value } of this.#all(DEFINITIONS, {}, ctx)) {
      const { definition, at } = value as unknown as StoredDefinition
      // requests can contain definitions of this name: callers see only those of their open runs
      if (definition.name === name && (seesAll(ctx) || key === now || open.has(key))) add(key, definition, at)
    }
    // throws WORKFLOW_UNKNOWN
    if (found.size === 0 && !current) await this.#options.library.find(workflow)
    const orderOf = ({ isCurrent, lastUsed = 0 }: WorkflowVersion) => (isCurrent ? Number.POSITIVE_INFINITY : lastUsed)
    return [...found.values()].toSorted((a, b) => (orderOf(a) < orderOf(b) ? 1 : -1))
  }

  /** Number of open runs by version. */
  async #open(name: string, ctx: CallContext): Promise<ReadonlyMap<string, number>> {
    const open = new Map<string, number>()
    for await (const { value } of this.#all(RUNS, { index: 'by_status', equals: ['running'] }, ctx)) {
      const record = value as unknown as RunRecord
      const digest = record.definitions[name]
      if (record.workflow === name && digest !== undefined && isSeen(record, ctx)) open.set(digest, (open.get(digest) ?? 0) + 1)
    }
    return open
  }

  #missingIn(definition: WorkflowDefinition): string[] {
    const types = [...nodesWithin(definition)].map(({ node }) => node.type)
    return [...new Set(types)].filter(type => !this.#options.types.has(type))
  }

  async *#all(collection: string, query: object, ctx: CallContext): AsyncGenerator<StoreRecord, void> {
    for (let cursor: string | undefined; ; ) {
      const range = { ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
      const page = await this.#options.store.range(collection, range, ctx)
      yield* page.records
      cursor = page.next
      if (cursor === undefined) return
    }
  }
}

function ignoreUnknown(error: unknown): undefined {
  if (codeOf(error) !== 'WORKFLOW_UNKNOWN') throw error
}
