import type {
  ChatMessage,
  ConversationSummary,
  Json,
  Space,
  StoredMessage,
  TextPart,
  Fence,
  OpenTurn,
  Store,
  BeginOptions,
} from '@svc/core/contracts'
import { timelyId } from '@svc/storage-kit'
import { codeOf, type Log, timestamp, type CallContext, withTimeout } from '@svc/core'
import { conversationBusy, conversationFull, conversationUnknown, ticketUnknown } from './errors.ts'

/** The stored record of a conversation. Its turns are entries of the log. */
export interface ConversationRecord {
  readonly owner: string
  readonly created: string
  readonly updated: string
  /** Messages as callers see them. */
  readonly count: number
  readonly turns: number
  readonly bytes: number
}

/** A new id. */
const newId = () => `conv_${timelyId().replaceAll('-', '')}`
/** Whether an id has the form of a conversation id. */
export const isMade = (id: string) => /^conv_[0-9a-f]{32}$/.test(id)

export const COLLECTION = 'conversations'
export const LOG = 'conversation_turns'

export const SPACE: Space = {
  name: 'conversations',
  version: 1,
  collections: { [COLLECTION]: { indexes: { by_owner: ['owner', 'updated'], by_updated: ['updated'] } } },
  logs: [LOG],
}

const asJson = (value: object): Json => value as unknown as Json

/** A turn as a log entry. */
export const turnOf = (value: Json): StoredMessage[] => value as unknown as StoredMessage[]

export function summaryOf(id: string, record: ConversationRecord): ConversationSummary {
  return { id, owner: record.owner, createdAt: record.created, updatedAt: record.updated, messageCount: record.count }
}

const textOf = (message: StoredMessage) =>
  message.parts
    .filter((part): part is TextPart => part.type === 'text')
    .map(part => part.text)
    .join('')

/** A turn as callers see it: the message of the user, and the text of the assistant from all rounds in one message. */
export function shownTurn(turn: readonly StoredMessage[]): ChatMessage[] {
  const user = turn
    .filter(message => message.role === 'user')
    .map(message => ({ role: 'user' as const, content: textOf(message) }))
  const assistant = turn.filter(message => message.role === 'assistant')
  if (assistant.length === 0) return user
  const status = assistant.find(message => message.status)?.status
  return [...user, { role: 'assistant', content: assistant.map(textOf).join(''), ...(status ? { status } : {}) }]
}

/** Number of messages that `shownTurn` returns for a turn. */
function countShown(turn: readonly StoredMessage[]): number {
  const users = turn.filter(message => message.role === 'user').length
  return turn.some(message => message.role === 'assistant') ? users + 1 : users
}

/** The record after one more turn. */
function grown(
  record: ConversationRecord | undefined,
  owner: string,
  turn: readonly StoredMessage[],
  now: string
): ConversationRecord {
  const base = record ?? { owner, created: now, updated: now, count: 0, turns: 0, bytes: 0 }
  const updated = now > base.updated ? now : base.updated
  return { ...base, updated, count: base.count + countShown(turn), turns: base.turns + 1, bytes: base.bytes + sizeOf(turn) }
}

/** The approximate UTF-8 size of a turn's text. It counts the text, not the stored form. */
function sizeOf(turn: readonly StoredMessage[]): number {
  let sum = 0
  for (const { parts } of turn)
    for (const part of parts) sum += part.type === 'text' ? Buffer.byteLength(part.text) : JSON.stringify(part).length
  return sum
}

interface TurnLimits {
  readonly maxMessages: number
  readonly maxBytes: number
  readonly leaseMs: number
}

interface TurnsOptions {
  readonly store: Store
  /** Identifies this process among those that share the store. */
  readonly holder: string
  readonly limits: TurnLimits
  readonly log: Log
  /** The context of work that must end even if its caller has left. */
  readonly lasting: CallContext
}

interface TicketedTurn {
  readonly id: string
  readonly owner: string
  readonly version: number
  readonly record: ConversationRecord | undefined
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

/** Whether this principal can access the data of `owner`. */
const maySee = (owner: string, { principal }: CallContext) =>
  principal.id === owner || principal.scopes.includes('admin') || principal.scopes.includes('*')

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
    return options.conversationId === undefined ? this.#beginNew(ctx) : this.#beginOld(options.conversationId, options, ctx)
  }

  async append(ticket: string, messages: readonly StoredMessage[], ctx: CallContext): Promise<ConversationSummary> {
    const turn = this.#held.get(ticket)
    if (!turn) throw ticketUnknown()
    const young = this.#young.get(turn.id)
    if (young?.dropped) throw conversationUnknown(turn.id)
    const record = grown(turn.record, turn.owner, messages, timestamp())
    const writing = write(this.#parts.store, turn, record, messages, ctx)
    if (young) young.keeping = writing
    await writing
    return summaryOf(turn.id, record)
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
  #beginNew(ctx: CallContext): OpenTurn {
    const id = newId()
    const ticket = this.#hold({ id, owner: ctx.principal.id, version: 0, record: undefined, lease: undefined })
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
      return { ticket, conversationId: id, exists: true, turns: past.map(entry => turnOf(entry.value)).reverse() }
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

async function acquire(store: Store, id: string, request: Parameters<Store['acquire']>[1], ctx: CallContext): Promise<Fence> {
  try {
    const { lease, fence } = await store.acquire(`conversation/${id}`, request, ctx)
    return { lease, fence }
  } catch (error) {
    throw codeOf(error) === 'LEASE_BUSY' ? conversationBusy(id, request.waitMs) : error
  }
}

/** The record of a conversation that this principal can access. Throws CONVERSATION_UNKNOWN for any other. */
export async function readRecord(
  store: Store,
  id: string,
  ctx: CallContext
): Promise<{ version: number; value: ConversationRecord }> {
  const found = await store.get(COLLECTION, id, ctx)
  const value = found?.value as unknown as ConversationRecord | undefined
  if (!found || !value || !maySee(value.owner, ctx)) throw conversationUnknown(id)
  return { version: found.version, value }
}

function checkSize(record: ConversationRecord, { maxMessages, maxBytes }: TurnLimits) {
  if (record.count >= maxMessages) throw conversationFull(maxMessages, 'messages')
  if (record.bytes >= maxBytes) throw conversationFull(maxBytes, 'bytes')
}

async function write(
  store: Store,
  turn: TicketedTurn,
  record: ConversationRecord,
  messages: readonly StoredMessage[],
  ctx: CallContext
) {
  try {
    await store.batch(
      [
        { op: 'put', collection: COLLECTION, key: turn.id, value: asJson(record), ifVersion: turn.version },
        { op: 'append', log: LOG, id: turn.id, values: [asJson(messages)], ifLength: record.turns - 1 },
      ],
      turn.lease ? { fence: turn.lease } : {},
      ctx
    )
  } catch (error) {
    // only a deletion changes a conversation while another turn holds its lease
    throw codeOf(error) === 'STORE_CONFLICT' ? conversationUnknown(turn.id) : error
  }
}
