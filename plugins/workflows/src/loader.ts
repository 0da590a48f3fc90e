import { readFile } from 'node:fs/promises'
import type { SlotView, Use } from '@svc/core'
import type { Json, LogEntry, Store, WorkflowDefinition, WorkflowNode } from '@svc/core/contracts'
import { type CompiledGraph, compile } from './compiled.ts'
import type { Loaded } from './drive.ts'
import type { Entry } from './entries.ts'
import { invalid, secretMissing } from './errors.ts'
import type { Inner } from './execution.ts'
import { type History, newHistory, note } from './history.ts'
import { Masks } from './masks.ts'
import type { SecretSource } from './settings.ts'
import { DEFINITIONS, INBOX, LOG, type News, RUNS, type RunRecord } from './space.ts'
import { checkInput, checkResult, withDefaults } from './values.ts'

export interface LoaderParts {
  readonly store: Store
  readonly types: SlotView<WorkflowNode>
  readonly secrets: Readonly<Record<string, SecretSource>>
}

const [PAGE, NEWS] = [10_000, 200]
/** So many definitions are kept ready. */
const KEPT = 200

/** Reads runs from the store. */
export class Loader {
  readonly #parts: LoaderParts
  readonly #ready = new Map<string, { readonly definition: WorkflowDefinition; readonly graph: CompiledGraph }>()
  #version = -1

  constructor(parts: LoaderParts) {
    this.#parts = parts
  }

  async record(id: string, use: Use): Promise<RunRecord | undefined> {
    return (await this.#parts.store.get(RUNS, id, use))?.value as unknown as RunRecord | undefined
  }

  /** The log of a run from one entry on. */
  async entries(id: string, from: number, use: Use): Promise<readonly LogEntry<Entry>[]> {
    const all: LogEntry<Entry>[] = []
    for (;;) {
      const page = await this.#parts.store.read(LOG, id, { from: from + all.length, limit: PAGE }, use)
      all.push(...(page as unknown as LogEntry<Entry>[]))
      if (page.length < PAGE) return all
    }
  }

  async history(id: string, use: Use): Promise<History> {
    const history = newHistory()
    for (const { value } of await this.entries(id, 1, use)) note(history, value)
    return history
  }

  /** What has come for a run and is not taken yet. */
  async news(id: string, use: Use): Promise<readonly { readonly key: string; readonly news: News }[]> {
    const { records } = await this.#parts.store.range(INBOX, { from: `${id}/`, to: `${id}0`, limit: NEWS }, use)
    return records.map(({ key, value }) => ({ key, news: value as unknown as News }))
  }

  /** All that working on a run needs. Throws INVALID_VALUE where a secret is missing. */
  async load(id: string, record: RunRecord, use: Use): Promise<Loaded> {
    return this.ready(id, record, await this.history(id, use), use)
  }

  async ready(id: string, record: RunRecord, history: History, use: Use): Promise<Loaded> {
    const { definition, graph } = await this.#definition(record.definitions[record.workflow]!, use)
    const secrets = await this.secretsOf(definition)
    const inner = await this.#inner(record, use)
    return {
      id,
      record,
      history,
      definition,
      graph,
      secrets,
      masks: new Masks(secrets),
      checkResult: result => checkResult(definition, result),
      within: (workflow, input, parameters) => innerOf(inner, workflow, input, parameters, record),
    }
  }

  /** The secrets a definition names. Throws INVALID_VALUE for those that are not there. */
  async secretsOf({ name, secrets = [] }: WorkflowDefinition): Promise<Readonly<Record<string, string>>> {
    const entries = await Promise.all(secrets.map(async one => [one, await valueOf(this.#parts.secrets[one])] as const))
    const missing = entries.filter(([, value]) => value === undefined).map(([one]) => one)
    if (missing.length > 0) throw secretMissing(name, missing)
    return Object.fromEntries(entries) as Readonly<Record<string, string>>
  }

  async #inner(record: RunRecord, use: Use) {
    const entries = Object.entries(record.definitions).filter(([name]) => name !== record.workflow)
    return new Map(await Promise.all(entries.map(async ([name, digest]) => [name, await this.#definition(digest, use)] as const)))
  }

  async #definition(digest: string, use: Use) {
    this.#forget()
    const there = this.#ready.get(digest)
    if (there) return there
    const found = await this.#parts.store.get(DEFINITIONS, digest, use)
    return this.know(digest, found!.value as unknown as WorkflowDefinition)
  }

  /** Has a definition ready. */
  know(digest: string, definition: WorkflowDefinition) {
    this.#forget()
    const made = this.#ready.get(digest) ?? { definition, graph: compile(this.#parts.types, definition) }
    if (this.#ready.size >= KEPT) this.#ready.clear()
    this.#ready.set(digest, made)
    return made
  }

  /** Types of nodes come and go. */
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
  inner: ReadonlyMap<string, { readonly definition: WorkflowDefinition; readonly graph: CompiledGraph }>,
  workflow: string,
  input: Json,
  parameters: Json | undefined,
  { createdAt }: RunRecord
): Promise<Inner> {
  const found = inner.get(workflow)
  if (!found) throw invalid('workflow', `"${workflow}" was not part of the run when it began`)
  await checkInput(found.definition, input)
  const given = await withDefaults(found.definition, parameters ?? {})
  const vars = { input, parameters: given, run: { workflow, started_at: new Date(createdAt).toISOString() }, secrets: {} }
  return { graph: found.graph, vars, check: out => checkResult(found.definition, out) }
}

