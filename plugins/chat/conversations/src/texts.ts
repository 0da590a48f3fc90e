import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf, type Log } from '@svc/core'
import type { ConversationMatch, FoundConversation, Json, Store, StoreOp, TextHit, TextIndex } from '@svc/core/contracts'
import { onlyConflict } from '@svc/storage-kit/records'
import { cursorInvalid, invalid, searchUnavailable } from './errors.ts'
import {
  CHANGES,
  COLLECTION,
  type ConversationRecord,
  markOp,
  maySee,
  messageId,
  readTurns,
  recordOf,
  seesAll,
  summaryOf,
  TEXTS,
  textOf,
  type TurnEntry,
} from './record.ts'
import type { Marks } from './turns.ts'

/** The searched texts of a turn, or of a title (number 0). */
interface TextRecord {
  readonly owner: string
  readonly title?: string
  readonly user?: string
  readonly assistant?: string
  /** Index of the message of the user, and of the last answer. */
  readonly at?: readonly [user: number, assistant: number]
}

interface TextsOptions {
  readonly store: Store
  readonly index: TextIndex | undefined
  readonly log: Log
  readonly lasting: CallContext
}

/** Delay after a change, so that one pass has many. */
const SOON_MS = 250
/** How often a worker looks for changes of processes that have ended. */
const SWEEP_MS = 30_000
/** Pause between two groups: turns go first. */
const PAUSE_MS = 20
const GROUP = 50
const [MOST_OPS, MOST_CHARS, MOST_TEXT] = [500, 4_000_000, 200_000]
const DIGITS = 7

const keyOf = (id: string, turn: number) => `${id}/${String(turn).padStart(DIGITS, '0')}`
const rangeOf = (id: string) => ({ from: `${id}/`, to: `${id}0` })

/**
 * The full-text index of conversations. A batch that changes a conversation marks it; the texts follow soon after, outside the
 * turn. A mark stays until the texts are written, so they also follow after a crash. Two processes that write the texts of the
 * same conversation exclude each other by the version of the mark.
 */
export class Texts implements Marks {
  readonly #options: TextsOptions
  readonly #changed = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #sweeper: NodeJS.Timeout | undefined
  #pass: Promise<void> | undefined

  constructor(options: TextsOptions) {
    this.#options = options
  }

  ops(id: string): readonly StoreOp[] {
    return this.#options.index ? [markOp(id)] : []
  }

  changed(id: string): void {
    if (!this.#options.index) return
    this.#changed.add(id)
    this.#timer ??= setTimeout(() => void this.#start(), SOON_MS).unref()
  }

  /** Looks for changes of ended processes, now and from time to time. For the workers of a server. */
  begin(): void {
    if (!this.#options.index || this.#options.lasting.signal.aborted) return
    void this.#sweep()
    this.#sweeper = setInterval(() => void this.#sweep(), SWEEP_MS).unref()
  }

  /** Stops, and waits for the batch that is being written. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer)
    clearInterval(this.#sweeper)
    await this.#pass
  }

  /** Finds conversations by their texts. A found text that is out of date is not shown to a principal that cannot see it. */
  async search(
    { q, limit, cursor, label }: { q: string; limit: number; cursor?: string; label?: string },
    ctx: CallContext
  ): Promise<{ readonly found: readonly FoundConversation[]; readonly next?: string }> {
    const { index, store } = this.#options
    if (!index) throw searchUnavailable()
    if (q.length > 1000) throw invalid('q', 'must have at most 1000 characters')
    const equals = seesAll(ctx) ? {} : { equals: [ctx.principal.id] }
    const query = {
      index: 'content',
      query: q,
      limit: Math.min(limit, 100),
      ...equals,
      ...(cursor === undefined ? {} : { cursor }),
    }
    const page = await index.search(TEXTS, query, ctx).catch((error: unknown) => {
      throw codeOf(error) === 'STORE_INVALID' && cursor !== undefined ? cursorInvalid() : error
    })
    const hits = Map.groupBy(page.hits, ({ record }) => record.key.slice(0, record.key.indexOf('/')))
    const found = await Promise.all(
      Array.from(hits, async ([id, texts]): Promise<FoundConversation | undefined> => {
        const value = await store.get(COLLECTION, id, ctx)
        const record = value && recordOf(value.value)
        if (!record || !maySee(record.owner, ctx) || !(label === undefined || record.labels?.includes(label))) return undefined
        return { conversation: summaryOf(id, record), matches: texts.flatMap(matchesOf) }
      })
    )
    return { found: found.filter(item => item !== undefined), ...(page.next === undefined ? {} : { next: page.next }) }
  }

  #start(): Promise<void> {
    this.#timer = undefined
    const pass = (this.#pass ?? Promise.resolve()).then(() => this.#write())
    return (this.#pass = pass)
  }

  async #sweep(): Promise<void> {
    const { store, lasting, log } = this.#options
    try {
      for (let cursor: string | undefined; ; ) {
        const page = await store.range(CHANGES, { limit: 1000, ...(cursor === undefined ? {} : { cursor }) }, lasting)
        for (const { key } of page.records) this.#changed.add(key)
        if (page.records.length > 0) await this.#start()
        cursor = page.next
        if (cursor === undefined) return
      }
    } catch (err) {
      if (!lasting.signal.aborted) log.warn({ err }, 'failed to look for changed conversations')
    }
  }

  /** Writes the texts of all changed conversations, group by group. Never rejects: the marks stay. */
  async #write(): Promise<void> {
    const { lasting, log } = this.#options
    while (this.#changed.size > 0 && !lasting.signal.aborted) {
      const group = [...this.#changed].slice(0, GROUP)
      for (const id of group) this.#changed.delete(id)
      try {
        await this.#writeGroup(group)
        await sleep(PAUSE_MS, undefined, { signal: lasting.signal, ref: false }).catch(() => {})
      } catch (err) {
        if (!lasting.signal.aborted) log.warn({ err }, 'failed to write the full-text index of conversations')
        // the next change or sweep tries again
        return
      }
    }
  }

  /** In one batch, or one by one if another process has changed one of them. */
  async #writeGroup(ids: readonly string[]): Promise<void> {
    const { store, lasting } = this.#options
    let ops: StoreOp[] = []
    let size = 0
    for (const id of ids) {
      const update = await this.#update(id)
      ops.push(...update.ops)
      size += update.size
      if (ops.length < MOST_OPS && size < MOST_CHARS) continue
      await store.batch(ops, {}, lasting).catch(onlyConflict)
      ops = []
      size = 0
    }
    if (ops.length === 0) return
    try {
      await store.batch(ops, {}, lasting)
    } catch (error) {
      onlyConflict(error)
      for (const id of ids) {
        const update = await this.#update(id)
        if (update.ops.length > 0) await store.batch(update.ops, {}, lasting).catch(onlyConflict)
      }
    }
  }

  /**
   * The operations that bring the texts of a conversation up to date and remove its mark. Of a long conversation, it writes most
   * itself; each batch changes the version of the mark, so a concurrent change stops it.
   */
  async #update(id: string): Promise<{ readonly ops: readonly StoreOp[]; readonly size: number }> {
    const { store, lasting } = this.#options
    const mark = await store.get(CHANGES, id, lasting)
    if (!mark) return { ops: [], size: 0 }
    let { version } = mark
    const flush = async (ops: readonly StoreOp[]) => {
      await store.batch([{ ...markOp(id), ifVersion: version }, ...ops], {}, lasting)
      version += 1
    }
    const kept = await store.get(COLLECTION, id, lasting)
    const rest = kept ? await this.#texts(id, recordOf(kept.value), flush) : await this.#removal(id, flush)
    return {
      ops: [...rest, { op: 'delete', collection: CHANGES, key: id, ifVersion: version }],
      size: rest.reduce((sum, op) => sum + (op.op === 'put' ? JSON.stringify(op.value).length : 0), 0),
    }
  }

  async #texts(id: string, record: ConversationRecord, flush: (ops: readonly StoreOp[]) => Promise<void>): Promise<StoreOp[]> {
    const { store, lasting } = this.#options
    const { records } = await store.range(TEXTS, { ...rangeOf(id), reverse: true, limit: 1 }, lasting)
    const [last] = records
    // the last text is written last: with another owner, all of them are out of date
    const isCurrent = last !== undefined && (last.value as unknown as TextRecord).owner === record.owner
    const from = isCurrent ? Number(last.key.slice(-DIGITS)) + 1 : 1
    let ops: StoreOp[] = [...(await this.#titleOps(id, record))]
    let size = 0
    for await (const { number, entry } of readTurns(store, id, { from, to: record.turns }, lasting)) {
      const text = textsOf(record.owner, entry)
      ops.push({ op: 'put', collection: TEXTS, key: keyOf(id, number), value: text as unknown as Json })
      size += (text.user?.length ?? 0) + (text.assistant?.length ?? 0)
      if (ops.length < MOST_OPS && size < MOST_CHARS) continue
      await flush(ops)
      ops = []
      size = 0
    }
    return ops
  }

  async #titleOps(id: string, { owner, title }: ConversationRecord): Promise<StoreOp[]> {
    const { store, lasting } = this.#options
    const key = keyOf(id, 0)
    const before = (await store.get(TEXTS, key, lasting))?.value as unknown as TextRecord | undefined
    if (title === undefined) return before ? [{ op: 'delete', collection: TEXTS, key }] : []
    if (before?.title === title && before.owner === owner) return []
    return [{ op: 'put', collection: TEXTS, key, value: { owner, title } }]
  }

  async #removal(id: string, flush: (ops: readonly StoreOp[]) => Promise<void>): Promise<StoreOp[]> {
    const { store, lasting } = this.#options
    for (;;) {
      const { records, next } = await store.range(TEXTS, { ...rangeOf(id), limit: MOST_OPS }, lasting)
      const ops = records.map(({ key }) => ({ op: 'delete', collection: TEXTS, key }) as const)
      if (next === undefined) return ops
      await flush(ops)
    }
  }
}

function textsOf(owner: string, { messages }: TurnEntry): TextRecord {
  const said = (role: 'user' | 'assistant') =>
    messages
      .filter(message => message.role === role)
      .map(textOf)
      .join('')
      .slice(0, MOST_TEXT)
      .toWellFormed()
  const indexOf = (role: string) =>
    Math.max(
      0,
      messages.findLastIndex(message => message.role === role)
    )
  return { owner, user: said('user'), assistant: said('assistant'), at: [indexOf('user'), indexOf('assistant')] }
}

function matchesOf({ record, snippets }: TextHit): ConversationMatch[] {
  const turn = Number(record.key.slice(-DIGITS))
  const [user, assistant] = (record.value as unknown as TextRecord).at ?? [0, 0]
  return snippets.map(({ path, text, marks }) => ({
    ...(path === 'title' ? {} : { messageId: messageId(turn, path === 'user' ? user : assistant) }),
    text,
    marks,
  }))
}
