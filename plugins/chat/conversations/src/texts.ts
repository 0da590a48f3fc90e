import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf, type Log } from '@svc/core'
import type { ConversationMatch, FoundConversation, Json, Store, StoreOp, TextHit, TextIndex } from '@svc/core/contracts'
import { onlyConflict } from '@svc/storage-kit/records'
import { cursorInvalid, invalid, searchUnavailable } from './errors.ts'
import {
  CHANGES,
  COLLECTION,
  type ConversationRecord,
  isWholeMark,
  wholeMark,
  type Mark,
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
  turnOf,
} from './record.ts'
import type { MarkedTurn, Marks } from './turns.ts'

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
/** Pause between two groups, at least this and as long as the group took: turns go first. No longer with so many behind. */
const [PAUSE_MS, MOST_BEHIND] = [20, 10_000]
const GROUP = 50
const [MOST_OPS, MOST_CHARS, MOST_TEXT] = [500, 4_000_000, 200_000]
/** Characters of turns that wait in memory; the others are read again. */
const MOST_WAITING = 8_000_000
const DIGITS = 7

const keyOf = (id: string, turn: number) => `${id}/${String(turn).padStart(DIGITS, '0')}`
const rangeOf = (id: string) => ({ from: `${id}/`, to: `${id}0` })
const idOf = (key: string) => key.slice(0, key.indexOf('/'))

/** Changes of a conversation that this process has made: the text of each, if it is in memory. */
type Changes = Map<Mark, TextRecord | undefined>

/**
 * The full-text index of conversations. A batch that changes a conversation puts a mark; the texts follow soon after, outside the
 * turn. A batch that writes texts deletes the marks that it has seen before it read the conversation. So a mark stays until its
 * texts are written, also over a crash, and two processes that write the texts of the same conversation exclude each other.
 */
export class Texts implements Marks {
  readonly #options: TextsOptions
  readonly #changed = new Map<string, Changes>()
  #waiting = 0
  #timer: NodeJS.Timeout | undefined
  #sweeper: NodeJS.Timeout | undefined
  #pass: Promise<void> | undefined

  constructor(options: TextsOptions) {
    this.#options = options
  }

  ops(mark: Mark): readonly StoreOp[] {
    return this.#options.index ? [markOp(mark)] : []
  }

  changed(mark: Mark, turn?: MarkedTurn): void {
    if (!this.#options.index) return
    const id = idOf(mark)
    const changes = this.#changed.get(id) ?? new Map<Mark, TextRecord | undefined>()
    const text = turn && this.#waiting < MOST_WAITING ? textsOf(turn.owner, turn.entry) : undefined
    this.#waiting += sizeOf(text)
    this.#changed.set(id, changes.set(mark, text))
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
    const hits = Map.groupBy(page.hits, ({ record }) => idOf(record.key))
    const found = await Promise.all(
      Array.from(hits, async ([id, texts]): Promise<FoundConversation | undefined> => {
        const value = await store.get(COLLECTION, id, ctx)
        const record = value && recordOf(value.value)
        if (!record || !maySee(record.owner, ctx) || !(label === undefined || record.labels?.includes(label))) return undefined
        return { conversation: summaryOf(id, record, value.version), matches: texts.flatMap(matchesOf) }
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
        for (const { key } of page.records)
          if (!this.#changed.has(idOf(key))) this.#changed.set(idOf(key), new Map([[key, undefined]]))
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
      const group = this.#changed.entries().take(GROUP).toArray()
      for (const [id, changes] of group) {
        this.#changed.delete(id)
        for (const text of changes.values()) this.#waiting -= sizeOf(text)
      }
      const began = performance.now()
      try {
        await this.#writeGroup(group)
        const isBehind = this.#changed.size > MOST_BEHIND
        const pause = isBehind ? PAUSE_MS : Math.max(PAUSE_MS, performance.now() - began)
        await sleep(pause, undefined, { signal: lasting.signal, ref: false }).catch(() => {})
      } catch (err) {
        if (!lasting.signal.aborted) log.warn({ err }, 'failed to write the full-text index of conversations')
        // the next change or sweep tries again
        return
      }
    }
  }

  /** In few batches. Conversations of a batch that another process has changed are written one by one. */
  async #writeGroup(group: readonly (readonly [id: string, changes: Changes])[]): Promise<void> {
    let batch: Update = { ids: [], ops: [] }
    let size = 0
    for (const [id, changes] of group) {
      const ops = knownOps(id, changes) ?? (await this.#update(id))
      batch.ids.push(id)
      batch.ops.push(...ops)
      size += ops.reduce((sum, op) => sum + (op.op === 'put' ? sizeOf(op.value as unknown as TextRecord) : 0), 0)
      if (batch.ops.length < MOST_OPS && size < MOST_CHARS) continue
      await this.#commit(batch)
      batch = { ids: [], ops: [] }
      size = 0
    }
    await this.#commit(batch)
  }

  async #commit({ ids, ops }: Update): Promise<void> {
    const { store, lasting } = this.#options
    if (ops.length === 0) return
    try {
      await store.batch(ops, {}, lasting)
    } catch (error) {
      onlyConflict(error)
      for (const id of ids) {
        const again = await this.#update(id)
        if (again.length > 0) await store.batch(again, {}, lasting).catch((err: unknown) => this.#again(id, err))
      }
    }
  }

  /**
   * Reads a conversation, and returns what its marks name and their removal. Most of a long one is written here. Each batch changes
   * a mark, so another process that works on it stops it.
   */
  async #update(id: string): Promise<readonly StoreOp[]> {
    const { store, lasting } = this.#options
    const { records: marks, next } = await store.range(CHANGES, { ...rangeOf(id), limit: MOST_OPS }, lasting)
    const [first] = marks
    if (!first) return []
    let { version } = first
    const flush = async (ops: readonly StoreOp[]) => {
      await store.batch([{ ...markOp(first.key), ifVersion: version }, ...ops], {}, lasting)
      version += 1
    }
    try {
      const kept = await store.get(COLLECTION, id, lasting)
      const keys = marks.map(({ key }) => key)
      const rest = kept ? await this.#texts(id, recordOf(kept.value), keys, flush) : await this.#removal(id, flush)
      if (next !== undefined) this.changed(wholeMark(id))
      return [...rest, ...marks.map(mark => markGone(mark.key, mark === first ? version : mark.version))]
    } catch (error) {
      this.#again(id, error)
      return []
    }
  }

  /** Another process was faster with some of the marks. It does not know of those that came since. */
  #again(id: string, error: unknown): void {
    onlyConflict(error)
    this.changed(wholeMark(id))
  }

  async #texts(id: string, record: ConversationRecord, marks: readonly Mark[], flush: Flush): Promise<StoreOp[]> {
    const numbers = marks.map(turnOf).filter(number => number !== undefined)
    const isWhole = marks.some(isWholeMark)
    let ops: StoreOp[] = numbers.length < marks.length || numbers.includes(1) ? await this.#titleOps(id, record) : []
    let size = 0
    for await (const { number, entry } of isWhole ? this.#turns(id, 1, record.turns) : this.#turnsOf(id, numbers)) {
      const text = textsOf(record.owner, entry)
      ops.push({ op: 'put', collection: TEXTS, key: keyOf(id, number), value: text as unknown as Json })
      size += sizeOf(text)
      if (ops.length < MOST_OPS && size < MOST_CHARS) continue
      await flush(ops)
      ops = []
      size = 0
    }
    return ops
  }

  #turns(id: string, from: number, to: number) {
    const { store, lasting } = this.#options
    return readTurns(store, id, { from, to }, lasting)
  }

  async *#turnsOf(id: string, numbers: readonly number[]) {
    for (const number of numbers) yield* this.#turns(id, number, number)
  }

  /** A title that was made is found in the first message. */
  async #titleOps(id: string, { owner, title, named }: ConversationRecord): Promise<StoreOp[]> {
    const { store, lasting } = this.#options
    const key = keyOf(id, 0)
    if (title !== undefined && named) return [{ op: 'put', collection: TEXTS, key, value: { owner, title } }]
    return (await store.get(TEXTS, key, lasting)) ? [{ op: 'delete', collection: TEXTS, key }] : []
  }

  async #removal(id: string, flush: Flush): Promise<StoreOp[]> {
    const { store, lasting } = this.#options
    for (;;) {
      const { records, next } = await store.range(TEXTS, { ...rangeOf(id), limit: MOST_OPS }, lasting)
      const ops = records.map(({ key }) => ({ op: 'delete', collection: TEXTS, key }) as const)
      if (next === undefined) return ops
      await flush(ops)
    }
  }
}

type Flush = (ops: readonly StoreOp[]) => Promise<void>

const sizeOf = (text: TextRecord | undefined) => (text?.user?.length ?? 0) + (text?.assistant?.length ?? 0)
const markGone = (key: Mark, ifVersion: number) => ({ op: 'delete', collection: CHANGES, key, ifVersion }) as const

interface Update {
  readonly ids: string[]
  readonly ops: StoreOp[]
}

/** Undefined if a text is not in memory. */
function knownOps(id: string, changes: Changes): readonly StoreOp[] | undefined {
  const ops: StoreOp[] = []
  for (const [mark, text] of changes) {
    if (!text) return undefined
    ops.push({ op: 'put', collection: TEXTS, key: keyOf(id, turnOf(mark)!), value: text as unknown as Json }, markGone(mark, 1))
  }
  return ops
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
