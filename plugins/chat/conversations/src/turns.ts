import type {
  BeginOptions,
  ConversationSummary,
  Fence,
  NewConversation,
  OpenTurn,
  Store,
  StoredMessage,
  StoreOp,
  TurnStep,
} from '@svc/core/contracts'
import { type CallContext, codeOf, type Log, timestamp, withTimeout } from '@svc/core'
import { conversationBusy, conversationFull, conversationUnknown, invalid, ticketUnknown } from './errors.ts'
import {
  asJson,
  checkedNames,
  COLLECTION,
  type ConversationRecord,
  emptyRecord,
  entryOf,
  grown,
  isMade,
  LOG,
  type Mark,
  maySee,
  newId,
  readRecord,
  recordOf,
  summaryOf,
  type TurnEntry,
  turnMark,
} from './record.ts'

export interface TurnLimits {
  readonly maxMessages: number
  readonly maxBytes: number
  readonly leaseMs: number
}

interface TurnsOptions {
  readonly store: Store
  /** Identifies this process among those that share the store. */
  readonly holder: string
  readonly limits: TurnLimits
  readonly marks: Marks
  readonly log: Log
  /** The context of work that must end even if its caller has left. */
  readonly lasting: CallContext
}

/** A stored turn in memory, with its owner. */
export interface MarkedTurn {
  readonly owner: string
  readonly entry: TurnEntry
}

/** Keeps the texts of conversations up to date. */
export interface Marks {
  /** The operations of a batch that changes a conversation. */
  ops(mark: Mark): readonly StoreOp[]
  /** Call it after the batch. */
  changed(mark: Mark, turn?: MarkedTurn): void
}

interface TicketedTurn {
  readonly id: string
  readonly owner: string
  readonly version: number
  readonly record: ConversationRecord | undefined
  /** Title and labels for a new record. */
  readonly names?: NewConversation | undefined
  lease: Fence | undefined
}

/** A conversation that a turn of this process is creating. The client knows its id before the store has it. */
interface Young {
  readonly owner: string
  /** Settled when the conversation is dropped or its turn has ended. The first waiter creates it. */
  grown?: PromiseWithResolvers<void>
  /** The write that stores it. */
  keeping?: Promise<unknown>
  dropped?: true
}

/** The running turns. A lease of the store allows one turn at a time for each conversation, in all processes. */
export class Turns {
  readonly #parts: TurnsOptions
  readonly #held = new Map<string, TicketedTurn>()
  readonly #young = new Map<string, Young>()
  #tickets = 0
  #renewal: NodeJS.Timeout | undefined

  constructor(parts: TurnsOptions) {
    this.#parts = parts
  }

  async begin(options: BeginOptions, ctx: CallContext): Promise<OpenTurn> {
    const { conversationId, newConversation, restored } = options
    const names = newConversation && checkedNames(newConversation)
    if (conversationId === undefined) return this.#beginNew(newId(), names, ctx)
    if (restored) return this.#beginNew(checkedId(conversationId), names, ctx)
    const [given] = Object.keys(names ?? {})
    if (given !== undefined) throw invalid(given, 'can be given only for a new conversation')
    return this.#beginOld(conversationId, options, ctx)
  }

  async append(
    ticket: string,
    messages: readonly StoredMessage[],
    steps: readonly TurnStep[],
    ctx: CallContext
  ): Promise<ConversationSummary> {
    const turn = this.#held.get(ticket)
    if (!turn) throw ticketUnknown()
    const young = this.#young.get(turn.id)
    if (young?.dropped) throw conversationUnknown(turn.id)
    const entry = { at: timestamp(), messages, ...(steps.length === 0 ? {} : { steps }) }
    const writing = this.#write(turn, entry, ctx)
    if (young) young.keeping = writing
    const { record, version } = await writing
    // a given title is indexed with the first turn
    const isPlain = record.turns > 1 || !record.named
    this.#parts.marks.changed(turnMark(turn.id, record.turns), isPlain ? { owner: record.owner, entry } : undefined)
    return summaryOf(turn.id, record, version)
  }

  /** Deletes a conversation before it is stored, so that its turn does not store it. Returns false if it is not being created here: look in the store. */
  async drop(id: string, ctx: CallContext): Promise<boolean> {
    const young = this.#young.get(id)
    if (!young || young.dropped || !maySee(young.owner, ctx)) return false
    if (young.keeping) {
      await young.keeping.catch(() => {})
      return false
    }
    young.dropped = true
    young.grown?.resolve()
    return true
  }

  /** Settled when this process no longer creates it; undefined if it does not create it for this principal. */
  made(id: string, ctx: CallContext): Promise<void> | undefined {
    const young = this.#young.get(id)
    // Principals without access do not wait: the timing would reveal that it exists.
    if (!young || young.dropped || !maySee(young.owner, ctx)) return undefined
    young.grown ??= Promise.withResolvers()
    return young.grown.promise
  }

  async end(ticket: string): Promise<void> {
    const turn = this.#held.get(ticket)
    this.#held.delete(ticket)
    this.#young.get(turn?.id ?? '')?.grown?.resolve()
    this.#young.delete(turn?.id ?? '')
    if (this.#held.size === 0) this.stop()
    if (turn?.lease) await this.#parts.store.release(turn.lease, this.#parts.lasting)
  }

  stop(): void {
    clearInterval(this.#renewal)
    this.#renewal = undefined
  }

  /** A new conversation takes no lease, because no other turn knows its id. */
  #beginNew(id: string, names: NewConversation | undefined, ctx: CallContext): OpenTurn {
    const ticket = this.#hold({ id, owner: ctx.principal.id, version: 0, record: undefined, names, lease: undefined })
    this.#young.set(id, { owner: ctx.principal.id })
    return { ticket, conversationId: id, exists: false, turns: [] }
  }

  async #beginOld(id: string, options: BeginOptions, ctx: CallContext): Promise<OpenTurn> {
    const { store, holder, limits, lasting } = this.#parts
    await this.#grown(id, options.waitMs, ctx)
    await readRecord(store, id, ctx)
    const lease = await acquire(store, id, { holder, ttlMs: limits.leaseMs, waitMs: options.waitMs }, ctx)
    try {
      const found = await readRecord(store, id, ctx)
      checkSize(found.value, limits)
      const limit = Math.min(options.history, found.value.turns)
      const past = limit > 0 ? await store.read(LOG, id, { reverse: true, limit }, ctx) : []
      const ticket = this.#hold({ id, owner: found.value.owner, version: found.version, record: found.value, lease })
      return { ticket, conversationId: id, exists: true, turns: past.map(entry => entryOf(entry.value).messages).reverse() }
    } catch (error) {
      await store.release(lease, lasting)
      throw error
    }
  }

  /** Waits for the turn that creates this conversation. */
  async #grown(id: string, waitMs: number, ctx: CallContext): Promise<void> {
    const { signal } = ctx
    const made = this.made(id, ctx)
    if (made) await withTimeout(waitMs, () => made, { signal, late: () => conversationBusy(id, waitMs) })
  }

  async #write(
    turn: TicketedTurn,
    entry: TurnEntry,
    ctx: CallContext
  ): Promise<{ readonly record: ConversationRecord; readonly version: number }> {
    const { store, marks } = this.#parts
    let { record: before, version } = turn
    for (;;) {
      const at = entry.at!
      const record = grown(before ?? emptyRecord(turn.owner, at, turn.names), entry, at)
      const ops: StoreOp[] = [
        { op: 'put', collection: COLLECTION, key: turn.id, value: asJson(record), ifVersion: version },
        { op: 'append', log: LOG, id: turn.id, values: [asJson(entry)], ifLength: record.turns - 1 },
        ...marks.ops(turnMark(turn.id, record.turns)),
      ]
      try {
        const { results } = await store.batch(ops, turn.lease ? { fence: turn.lease } : {}, ctx)
        return { record, version: results[0]! }
      } catch (error) {
        if (codeOf(error) !== 'STORE_CONFLICT') throw error
        // while a turn holds the lease, others only delete the conversation, or change its names or owner
        const now = before && (await store.get(COLLECTION, turn.id, ctx))
        if (!now || now.version === version) throw conversationUnknown(turn.id)
        before = recordOf(now.value)
        version = now.version
      }
    }
  }

  #hold(ticketedTurn: TicketedTurn): string {
    const ticket = `${this.#parts.holder}:${++this.#tickets}`
    this.#held.set(ticket, ticketedTurn)
    if (ticketedTurn.lease) this.#renewal ??= setInterval(() => this.#renewAll(), this.#parts.limits.leaseMs / 3).unref()
    return ticket
  }

  #renewAll() {
    const { store, limits, lasting, log } = this.#parts
    for (const { lease } of this.#held.values()) {
      if (lease)
        store
          .renew(lease, limits.leaseMs, lasting)
          .catch((err: unknown) => log.warn({ err, lease: lease.lease }, 'a lease was lost'))
    }
  }
}

function checkedId(id: string): string {
  if (!isMade(id)) throw conversationUnknown(id)
  return id
}

async function acquire(store: Store, id: string, request: Parameters<Store['acquire']>[1], ctx: CallContext): Promise<Fence> {
  try {
    const { lease, fence } = await store.acquire(`conversation/${id}`, request, ctx)
    return { lease, fence }
  } catch (error) {
    throw codeOf(error) === 'LEASE_BUSY' ? conversationBusy(id, request.waitMs) : error
  }
}

function checkSize(record: ConversationRecord, { maxMessages, maxBytes }: TurnLimits) {
  if (record.count >= maxMessages) throw conversationFull(maxMessages, 'messages')
  if (record.bytes >= maxBytes) throw conversationFull(maxBytes, 'bytes')
}
