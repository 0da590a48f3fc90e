import { type CallContext, codeOf, type Log } from '@svc/core'
import type { Conversations, ConversationFilter, JobKind, JobStep, JobTask, Json, Store } from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { keepLease } from '@svc/storage-kit'
import { adminOnly, invalid } from './errors.ts'
import { COLLECTION, type ConversationRecord, recordOf, seesAll } from './record.ts'

/** Deletes a conversation; with `version`, only if it did not change since. False if there was none, or it has changed. */
export type RemoveConversation = (id: string, version: number | undefined, ctx: CallContext) => Promise<boolean>

const PAGE = 200
/** Most matching turns of one search. */
const MOST_FOUND = 10_000

/** The job kind that deletes many conversations. Its input is a `ConversationFilter`, checked by `checkedFilter`. */
export const DELETE_KIND = 'conversations.delete'

/** Only this plugin adds these jobs: it checks the filter first. */
export const DELETE_INTERNAL = crypto.randomUUID()

const text = { type: 'string', minLength: 1, maxLength: 1000 }

interface DeletionOptions {
  readonly store: Store
  readonly texts: Pick<Conversations, 'search'>
  readonly remove: RemoveConversation
  readonly publish: Publish
}

/** Executes deletions. A second attempt goes on where the first ended: what is deleted is no longer found. */
export function createDeletion(options: DeletionOptions): JobKind {
  return {
    description: 'Delete the conversations that meet all conditions',
    internal: DELETE_INTERNAL,
    attempts: 10,
    input: {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      properties: { label: text, before: text, q: text, owner: text },
    },
    async *run(task: JobTask, ctx: CallContext): AsyncIterable<JobStep> {
      const filter = checkedFilter(task.input as ConversationFilter, ctx)
      let deleted = Number((task.checkpoint as { deleted?: number } | undefined)?.deleted ?? 0)
      const ids = filter.q === undefined ? byAge(options.store, filter, ctx) : byText(options, { ...filter, q: filter.q }, ctx)
      yield { type: 'log', level: 'info', message: `deleting ${conditionsOf(filter)}` }
      for await (const group of ids) {
        for (const id of group) {
          ctx.signal.throwIfAborted()
          if (await options.remove(id, undefined, ctx)) deleted += 1
        }
        yield { type: 'checkpoint', value: { deleted } }
        const message = `${deleted} conversations deleted`
        yield { type: 'progress', progress: deleted, message }
        yield { type: 'log', level: 'info', message }
      }
      const after = { ...filter, count: deleted }
      options.publish({ type: 'conversations_deleted', subject: 'conversations', after }, ctx)
      yield { type: 'result', value: { deleted } }
    },
  }
}

/** The conditions for the log. The words of a search can be private. */
const conditionsOf = ({ owner, label, before, q }: ConversationFilter): string =>
  [
    owner === '*' ? 'conversations of all owners' : `conversations of ${owner}`,
    ...(label === undefined ? [] : [`with the label ${label}`]),
    ...(before === undefined ? [] : [`unchanged since ${before}`]),
    ...(q === undefined ? [] : ['that a search finds']),
  ].join(', ')

/** Checks a filter for this principal and fills in the owner. Throws INVALID_VALUE, FORBIDDEN. */
export function checkedFilter(filter: ConversationFilter, ctx: CallContext): ConversationFilter & { readonly owner: string } {
  const { label, before, q, owner = ctx.principal.id } = filter
  if (label === undefined && before === undefined && q === undefined && filter.owner === undefined)
    throw invalid('filter', 'needs at least one of label, before, q and owner')
  if (before !== undefined && Number.isNaN(Date.parse(before)))
    throw invalid('before', 'must be a time such as 2026-01-31T12:00:00Z')
  if (q !== undefined && q.trim() === '') throw invalid('q', 'must not be blank')
  if (owner !== ctx.principal.id && !seesAll(ctx)) throw adminOnly('deleting conversations of others')
  return { ...filter, owner, ...(before === undefined ? {} : { before: new Date(before).toISOString() }) }
}

const meets = (record: ConversationRecord, { label, before, owner }: ConversationFilter) =>
  (owner === '*' || record.owner === owner) &&
  (label === undefined || (record.labels?.includes(label) ?? false)) &&
  (before === undefined || record.updated < before)

/** The ids of conversations that meet a filter, page by page, oldest first. */
async function* byAge(store: Store, filter: ConversationFilter, ctx: CallContext): AsyncGenerator<string[]> {
  const { owner, before } = filter
  const index = owner === '*' ? { index: 'by_updated' } : { index: 'by_owner', equals: [owner!] as Json[] }
  for (let cursor: string | undefined; ; ) {
    const more = { ...(before === undefined ? {} : { to: before }), ...(cursor === undefined ? {} : { cursor }) }
    const page = await store.range(COLLECTION, { ...index, ...more, limit: PAGE }, ctx)
    yield page.records.filter(({ value }) => meets(recordOf(value), filter)).map(({ key }) => key)
    cursor = page.next
    if (cursor === undefined) return
  }
}

/** All found ones first: deletions would move the pages of the search. */
async function* byText(
  { store, texts }: DeletionOptions,
  filter: ConversationFilter & { readonly q: string },
  ctx: CallContext
): AsyncGenerator<string[]> {
  const ids = new Set<string>()
  for (let cursor: string | undefined; ids.size < MOST_FOUND; ) {
    const page = await texts.search({ q: filter.q, limit: 100, ...(cursor === undefined ? {} : { cursor }) }, ctx)
    for (const { conversation } of page.found) ids.add(conversation.id)
    cursor = page.next
    if (cursor === undefined) break
  }
  const all = [...ids]
  for (let from = 0; from < all.length; from += PAGE) {
    const group = all.slice(from, from + PAGE)
    const records = await Promise.all(group.map(id => store.get(COLLECTION, id, ctx)))
    yield group.filter((_, at) => records[at] && meets(recordOf(records[at].value), filter))
  }
}

/** How long conversations are kept after their last turn, in days. 0: for good. */
interface Keep {
  readonly days: number
  /** For conversations with a label: the longest of its labels here, in place of `days`. */
  readonly labels: { readonly [label: string]: number }
}

interface RetentionOptions {
  readonly store: Store
  readonly keep: Keep
  readonly remove: RemoveConversation
  readonly publish: Publish
  readonly holder: string
  readonly log: Log
  readonly lasting: CallContext
}

const DAY_MS = 86_400_000
const [EVERY_MS, SOON_MS] = [10 * 60_000, 5_000]
const LEASE = 'conversations.retention'
const LEASE_MS = 30_000

/** Deletes old conversations in the background. Only one worker does it at a time. */
export class Retention {
  readonly #options: RetentionOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: RetentionOptions) {
    this.#options = options
  }

  begin(): void {
    const { days, labels } = this.#options.keep
    if (days > 0 || Object.values(labels).some(own => own > 0)) this.#next(SOON_MS)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #next(ms: number) {
    if (!this.#options.lasting.signal.aborted) this.#timer = setTimeout(() => void this.#round(), ms).unref()
  }

  async #round(): Promise<void> {
    const { store, holder, lasting, log } = this.#options
    try {
      const request = { holder: `${holder}${crypto.randomUUID()}`, ttlMs: LEASE_MS, waitMs: 0 }
      await using kept = await keepLease(store, LEASE, request, lasting)
      await this.run(Date.now(), kept.ctx)
    } catch (err) {
      if (!lasting.signal.aborted && codeOf(err) !== 'LEASE_BUSY') log.warn({ err }, 'failed to delete old conversations')
    }
    this.#next(EVERY_MS)
  }

  /** Deletes the conversations that are too old at this time (Unix milliseconds). A conversation that changes meanwhile stays. */
  async run(now: number, ctx: CallContext): Promise<number> {
    const { store, keep, remove, publish } = this.#options
    const shortest = Math.min(...[keep.days, ...Object.values(keep.labels)].filter(days => days > 0))
    if (!Number.isFinite(shortest)) return 0
    let count = 0
    for (let cursor: string | undefined; ; ) {
      const range = { index: 'by_updated', to: new Date(now - shortest * DAY_MS).toISOString(), limit: PAGE }
      const page = await store.range(COLLECTION, { ...range, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      for (const { key, version, value } of page.records) {
        const record = recordOf(value)
        const days = daysOf(record, keep)
        if (days > 0 && Date.parse(record.updated) < now - days * DAY_MS && (await remove(key, version, ctx))) count += 1
      }
      cursor = page.next
      if (cursor === undefined) break
    }
    if (count > 0) publish({ type: 'conversations_pruned', subject: 'conversations', after: { count } }, ctx)
    return count
  }
}

function daysOf({ labels = [] }: ConversationRecord, keep: Keep): number {
  const own = labels.filter(label => Object.hasOwn(keep.labels, label)).map(label => keep.labels[label]!)
  if (own.length === 0) return keep.days
  return own.includes(0) ? 0 : Math.max(...own)
}
