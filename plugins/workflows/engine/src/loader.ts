import { readFile } from 'node:fs/promises'
import type { SlotView, CallContext } from '@svc/core'
import { nodesWithin } from '@svc/workflow-lang'
import type { Json, LogEntry, Store, WorkflowDefinition, WorkflowNode } from '@svc/core/contracts'
import { LRUCache } from 'lru-cache'
import { type CompiledGraph, compile } from './compiled.ts'
import { type Entry, type History, historyOf } from './history.ts'
import { definitionGone, invalid, secretMissing } from './errors.ts'
import type { Inner } from './execution.ts'
import type { Letter } from './inbox.ts'
import { Redaction } from './redaction.ts'
import type { SecretSource } from './settings.ts'
import { DEFINITIONS, INBOX, LOG, type ChangeNotice, RUNS, type RunRecord, type StoredDefinition } from './space.ts'
import { checkInput, checkResult, withDefaults } from './values.ts'

/** A run that was loaded from the store. */
export interface Loaded {
  readonly id: string
  readonly record: RunRecord
  readonly history: History
  readonly definition: WorkflowDefinition
  readonly graph: CompiledGraph
  readonly hasUndo: boolean
  readonly secrets: Readonly<Record<string, string>>
  readonly redaction: Redaction
  readonly within: (workflow: string, input: Json, parameters: Json | undefined) => Promise<Inner>
  /** Returns the result with its defaults. Throws if it does not match its schema. */
  readonly checkResult: (result: Json) => Promise<Json>
}

export interface LoaderOptions {
  readonly store: Store
  readonly types: SlotView<WorkflowNode>
  readonly secrets: Readonly<Record<string, SecretSource>>
}

/** A compiled definition. */
interface Ready {
  readonly definition: WorkflowDefinition
  readonly graph: CompiledGraph
  readonly hasUndo: boolean
}
interface Within extends Ready {
  readonly secrets: Readonly<Record<string, string>>
}

const [PAGE, NEWS] = [10_000, 200]
/** Maximum number of compiled definitions in memory. */
const KEPT = 200

/** Loads runs from the store. */
export class Loader {
  readonly #parts: LoaderOptions
  readonly #ready = new LRUCache<string, Ready>({ max: KEPT })
  #version = -1

  constructor(parts: LoaderOptions) {
    this.#parts = parts
  }

  async record(id: string, ctx: CallContext): Promise<RunRecord | undefined> {
    return (await this.#parts.store.get(RUNS, id, ctx))?.value as unknown as RunRecord | undefined
  }

  /** The log of a run, starting with an entry. */
  async entries(id: string, from: number, ctx: CallContext): Promise<readonly LogEntry<Entry>[]> {
    const all: LogEntry<Entry>[] = []
    for (;;) {
      const page = await this.#parts.store.read(LOG, id, { from: from + all.length, limit: PAGE }, ctx)
      all.push(...(page as unknown as LogEntry<Entry>[]))
      if (page.length < PAGE) return all
    }
  }

  async history(id: string, ctx: CallContext): Promise<History> {
    return historyOf((await this.entries(id, 1, ctx)).map(({ value }) => value))
  }

  /** Notices for a run that it has not taken. */
  async news(id: string, ctx: CallContext): Promise<readonly Letter[]> {
    const all: Letter[] = []
    for (let cursor: string | undefined; ; ) {
      const query = { from: `${id}/`, to: `${id}0`, limit: NEWS, ...(cursor === undefined ? {} : { cursor }) }
      const { records, next } = await this.#parts.store.range(INBOX, query, ctx)
      all.push(...records.map(({ key, value }) => ({ key, news: value as unknown as ChangeNotice })))
      if (next === undefined) return all
      cursor = next
    }
  }

  /** Loads everything that an executor needs. Throws INVALID_VALUE if a secret is missing. */
  async ready(id: string, record: RunRecord, history: History, ctx: CallContext): Promise<Loaded> {
    const entries = Object.entries(record.definitions).map(
      async ([name, digest]) => [name, await this.#within(digest, ctx)] as const
    )
    const inner = new Map(await Promise.all(entries))
    const { definition, graph, secrets } = inner.get(record.workflow)!
    return {
      id,
      record,
      history,
      definition,
      graph,
      hasUndo: [...inner.values()].some(item => item.hasUndo),
      secrets,
      redaction: new Redaction(Object.assign({}, ...[...inner.values()].map(item => item.secrets))),
      checkResult: result => checkResult(definition, result),
      within: (workflow, input, parameters) => innerOf(inner, workflow, input, parameters, id, record),
    }
  }

  /** The secrets that a definition uses. Throws INVALID_VALUE for missing ones. */
  async secretsOf({ name, secrets = [] }: WorkflowDefinition): Promise<Readonly<Record<string, string>>> {
    if (secrets.length === 0) return {}
    const entries = await Promise.all(secrets.map(async secret => [secret, await valueOf(this.#parts.secrets[secret])] as const))
    const missing = entries.filter(([, value]) => value === undefined).map(([item]) => item)
    if (missing.length > 0) throw secretMissing(name, missing)
    return Object.fromEntries(entries) as Readonly<Record<string, string>>
  }

  async #within(digest: string, ctx: CallContext): Promise<Within> {
    const ready = await this.#definition(digest, ctx)
    return { ...ready, secrets: await this.secretsOf(ready.definition) }
  }

  /** A definition of a stored run. Throws DEFINITION_GONE. */
  async definition(digest: string, ctx: CallContext): Promise<WorkflowDefinition> {
    return (await this.#definition(digest, ctx)).definition
  }

  /** The same without compiling it, so that node types can be missing. */
  async text(digest: string, ctx: CallContext): Promise<WorkflowDefinition> {
    const there = this.#ready.get(digest)
    if (there) return there.definition
    const found = await this.#parts.store.get(DEFINITIONS, digest, ctx)
    if (!found) throw definitionGone()
    return (found.value as unknown as StoredDefinition).definition
  }

  async #definition(digest: string, ctx: CallContext): Promise<Ready> {
    this.#forget()
    const there = this.#ready.get(digest)
    if (there) return there
    const found = await this.#parts.store.get(DEFINITIONS, digest, ctx)
    if (!found) throw definitionGone()
    return this.know(digest, (found.value as unknown as StoredDefinition).definition)
  }

  /** Compiles a definition and caches it. */
  know(digest: string, definition: WorkflowDefinition): Ready {
    this.#forget()
    const made = this.#ready.get(digest) ?? readyOf(this.#parts.types, definition)
    this.#ready.set(digest, made)
    return made
  }

  /** Clears the cache when the node types have changed. */
  #forget(): void {
    const { version } = this.#parts.types
    if (version === this.#version) return
    this.#version = version
    this.#ready.clear()
  }
}

async function valueOf(source: SecretSource | undefined): Promise<string | undefined> {
  if (!source) return undefined
  if ('env' in source) return process.env[source.env] || undefined
  return (await readFile(source.file, 'utf8').catch(() => '')).trim() || undefined
}

async function innerOf(
  inner: ReadonlyMap<string, Within>,
  workflow: string,
  input: Json,
  parameters: Json | undefined,
  id: string,
  { createdAt }: RunRecord
): Promise<Inner> {
  const found = inner.get(workflow)
  if (!found) throw invalid('workflow', `"${workflow}" was not part of the run when it started`)
  const { definition, graph, secrets } = found
  const given = structuredClone(input)
  await checkInput(definition, given)
  const values = await withDefaults(definition, structuredClone(parameters ?? {}))
  const run = { id, workflow, started_at: new Date(createdAt).toISOString() }
  return { graph, vars: { input: given, parameters: values, run, secrets }, check: out => checkResult(definition, out) }
}

function readyOf(types: SlotView<WorkflowNode>, definition: WorkflowDefinition): Ready {
  const hasUndo = [...nodesWithin(definition)].some(({ node }) => node.compensate !== undefined)
  return { definition, graph: compile(types, definition), hasUndo }
}
