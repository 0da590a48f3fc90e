import { type CallContext, codeOf } from '@svc/core'
import type {
  BatchOptions,
  Conversations,
  Json,
  LogEntry,
  ModelMessage,
  RangePage,
  Space,
  Store,
  StoredMessage,
  StoreOp,
} from '@svc/core/contracts'
import { chainTooLong, itemNotFound, previousNotFound, responseNotFound, tooManyStored } from './errors.ts'
import { textIn } from '../fields.ts'
import type { PlacedItem } from './items.ts'
import { type ResponseEvent, responseId } from './output.ts'
import type { Shown } from './request.ts'

const [RESPONSES, DATA, CONVERSATIONS, EVENTS] = [
  'openai_responses',
  'openai_response_data',
  'openai_conversations',
  'openai_response_events',
] as const

export const SPACE: Space = {
  name: 'openai_api',
  version: 1,
  collections: {
    [RESPONSES]: {
      indexes: { by_owner: ['owner', 'kept', 'createdAt'], by_expiry: ['expires'], by_conversation: ['conversation'] },
    },
    [DATA]: {},
    [CONVERSATIONS]: {},
  },
  logs: [EVENTS],
}

/** `response`: the client asked to store it. `items`: only references to its items find it, for a while. */
export type Retention = 'response' | 'items'

/** A stored response without its items. Times are Unix milliseconds. */
export interface StoredResponse {
  readonly owner: string
  readonly kept: Retention
  readonly createdAt: number
  readonly expires: number
  /** The response, without its output. */
  readonly response: { readonly [field: string]: Json | undefined }
  readonly status: string
  readonly shows: Shown
  /** Characters of its items. */
  readonly size: number
  readonly previous?: string
  readonly conversation?: string
  /** The background job that makes it. */
  readonly job?: string
}

/** The items of a response. */
export interface ResponseData {
  readonly input: readonly Json[]
  readonly output: readonly Json[]
  /** The request of a background response that is not made yet, without its input. */
  readonly body?: Json
}

/** A stored response, and the version of its record. */
export interface FoundResponse {
  readonly hex: string
  readonly version: number
  readonly record: StoredResponse
}

export interface ResponseStoreOptions {
  readonly store: Store
  readonly conversations: Conversations | undefined
  /** Maximum number of stored responses of a principal. */
  readonly maxStored: number
  readonly lasting: CallContext
}

const ID = /^resp_([\da-f]{32})$/
const ITEM_ID = /^[a-z]{2,5}_([\da-f]{32})_i?\d{1,6}$/
/** Maximum number of responses before one, and of their characters. */
const [LONGEST_CHAIN, LARGEST_CHAIN] = [1_000, 64 * 1024 * 1024]
const [COUNT_EVERY, COUNT_PAGE, SWEPT] = [64, 1_000, 100]
/** Milliseconds to wait for another turn of the conversation. */
const TURN_WAIT_MS = 5_000

const asJson = (value: object): Json => value as unknown as Json
const FINAL: ReadonlySet<string> = new Set(['completed', 'incomplete', 'failed', 'cancelled'])
export const isFinal = ({ status }: StoredResponse): boolean => FINAL.has(status)

/** Keeps responses. A principal sees only its own. */
export class ResponseStore {
  readonly #options: ResponseStoreOptions
  /** Number of responses that each principal has added in this process. */
  readonly #added = new Map<string, number>()

  constructor(options: ResponseStoreOptions) {
    this.#options = options
  }

  /** The record of a response of any owner. */
  async find(hex: string, ctx: CallContext): Promise<FoundResponse | undefined> {
    const found = await this.#options.store.get(RESPONSES, hex, ctx)
    const record = found?.value as unknown as StoredResponse | undefined
    return found && record && record.expires > Date.now() ? { hex, version: found.version, record } : undefined
  }

  /** A response that the client asked to store. Throws if there is none, for this principal. */
  async read(id: string, ctx: CallContext): Promise<FoundResponse> {
    const found = await this.#stored(id, new Set(), ctx)
    if (!found) throw responseNotFound(id)
    return found
  }

  /** As `read`. `known`: conversations that exist. */
  async #stored(id: string, known: Set<string>, ctx: CallContext): Promise<FoundResponse | undefined> {
    const found = await this.#own(ID.exec(id)?.[1], ctx)
    if (found?.record.kept !== 'response') return undefined
    const { conversation } = found.record
    if (conversation === undefined || known.has(conversation)) return found
    if (await this.#hasConversation(conversation, ctx)) {
      known.add(conversation)
      return found
    }
    // its owner has deleted the conversation
    await this.remove(found)
    return undefined
  }

  async data({ hex }: FoundResponse, ctx: CallContext): Promise<ResponseData> {
    const found = await this.#options.store.get(DATA, hex, ctx)
    return (found?.value as unknown as ResponseData | undefined) ?? { input: [], output: [] }
  }

  /** The items of a response and of all before it, oldest first. */
  async chain(id: string, ctx: CallContext): Promise<PlacedItem[]> {
    const turns: (readonly Json[])[] = []
    const known = new Set<string>()
    let size = 0
    for (let next: string | undefined = id; next !== undefined; ) {
      const found = await this.#stored(next, known, ctx)
      if (!found || (found.record.status !== 'completed' && found.record.status !== 'incomplete')) throw previousNotFound(id)
      size += found.record.size
      if (turns.length >= LONGEST_CHAIN || size > LARGEST_CHAIN) throw chainTooLong()
      const { input, output } = await this.data(found, ctx)
      turns.push([...input, ...output])
      next = found.record.previous
    }
    return turns.reverse().flatMap(items => items.map(item => ({ item, param: 'previous_response_id' })))
  }

  /** Replaces references by the items that they name. */
  async resolve(items: readonly Json[], ctx: CallContext): Promise<Json[]> {
    const known = new Map<string, ResponseData>()
    const resolved: Json[] = []
    for (const [at, item] of items.entries()) {
      const { type, id } = item as { readonly type?: Json; readonly id?: Json }
      resolved.push(
        type === 'item_reference' ? await this.#item(textIn(id, `input[${at}].id`), `input[${at}].id`, known, ctx) : item
      )
    }
    return resolved
  }

  async #item(id: string, param: string, known: Map<string, ResponseData>, ctx: CallContext): Promise<Json> {
    const hex = ITEM_ID.exec(id)?.[1]
    if (hex !== undefined && !known.has(hex)) {
      const found = await this.#own(hex, ctx)
      known.set(hex, found ? await this.data(found, ctx) : { input: [], output: [] })
    }
    const { input, output } = known.get(hex ?? '') ?? { input: [], output: [] }
    const item = [...output, ...input].find(one => (one as { readonly id?: Json }).id === id)
    if (item === undefined) throw itemNotFound(id, param)
    return item
  }

  async #own(hex: string | undefined, ctx: CallContext): Promise<FoundResponse | undefined> {
    const found = hex === undefined ? undefined : await this.find(hex, ctx)
    return found?.record.owner === ctx.principal.id ? found : undefined
  }

  /** Operations that add a response, or change one that was found. */
  ops(hex: string, version: number, record: StoredResponse, data: ResponseData): StoreOp[] {
    return [
      { op: 'put', collection: RESPONSES, key: hex, value: asJson(record), ifVersion: version },
      { op: 'put', collection: DATA, key: hex, value: asJson(data) },
    ]
  }

  write(ops: readonly StoreOp[], options: BatchOptions, ctx: CallContext) {
    return this.#options.store.batch(ops, options, ctx)
  }

  /** Counts the responses of a principal, now and then. */
  async checkRoom({ principal: { id: owner } }: CallContext): Promise<void> {
    const { store, maxStored, lasting } = this.#options
    const added = this.#added.get(owner) ?? 0
    this.#added.set(owner, added + 1)
    if (added % Math.min(COUNT_EVERY, maxStored) !== 0) return
    let count = 0
    let cursor: string | undefined
    do {
      const query = { index: 'by_owner', equals: [owner, 'response'], limit: COUNT_PAGE }
      const page: RangePage = await store.range(RESPONSES, cursor === undefined ? query : { ...query, cursor }, lasting)
      count += page.records.length
      cursor = page.next
    } while (cursor !== undefined && count < maxStored)
    if (count < maxStored) return
    // the next request counts again
    this.#added.set(owner, added)
    throw tooManyStored(maxStored)
  }

  /** Operations that append events to the stream of a response. The number of an event is its position, from 0. */
  eventOps(hex: string, events: readonly ResponseEvent[]): StoreOp[] {
    const [first] = events
    if (!first) return []
    return [{ op: 'append', log: EVENTS, id: hex, values: events.map(asJson), ifLength: first.sequence_number }]
  }

  /** Events of a response, from this number on. */
  async events(hex: string, from: number, limit: number, ctx: CallContext): Promise<ResponseEvent[]> {
    const entries = await this.#options.store.read(EVENTS, hex, { from: from + 1, limit }, ctx)
    return entries.map(({ value }) => value as unknown as ResponseEvent)
  }

  async countEvents(hex: string, ctx: CallContext): Promise<number> {
    const [last]: readonly LogEntry[] = await this.#options.store.read(EVENTS, hex, { reverse: true, limit: 1 }, ctx)
    return last?.seq ?? 0
  }

  /** Adds a turn to the conversation of the previous response, or to a new one. Returns the id and an operation of the same batch. */
  async keepTurn(
    hex: string,
    previous: string | undefined,
    turn: readonly StoredMessage[],
    ctx: CallContext
  ): Promise<{ readonly conversation?: string; readonly ops: readonly StoreOp[] }> {
    const { conversations } = this.#options
    if (!conversations) return { ops: [] }
    const continued = previous === undefined ? undefined : await this.#continued(previous, ctx)
    const conversation =
      (await this.#append(conversations, continued, turn, ctx)) ?? (await this.#append(conversations, undefined, turn, ctx))
    if (conversation === undefined) return { ops: [] }
    return { conversation, ops: [{ op: 'put', collection: CONVERSATIONS, key: conversation, value: { last: hex } }] }
  }

  /** The conversation that ends with a response. Another response that continues the same one begins a new conversation. */
  async #continued(previous: string, ctx: CallContext): Promise<string | undefined> {
    const found = await this.#own(ID.exec(previous)?.[1], ctx)
    const conversation = found?.record.conversation
    if (!found || conversation === undefined) return undefined
    const state = await this.#options.store.get(CONVERSATIONS, conversation, ctx)
    return (state?.value as { readonly last?: string } | undefined)?.last === found.hex ? conversation : undefined
  }

  async #append(
    conversations: Conversations,
    conversationId: string | undefined,
    turn: readonly ModelMessage[],
    ctx: CallContext
  ): Promise<string | undefined> {
    try {
      const wish = { waitMs: TURN_WAIT_MS, history: 0, ...(conversationId === undefined ? {} : { conversationId }) }
      const open = await conversations.begin(wish, ctx)
      try {
        await conversations.append(open.ticket, turn, [], ctx)
      } finally {
        await conversations.end(open.ticket, ctx)
      }
      return open.conversationId
    } catch (error) {
      // a new conversation takes the turn
      if (conversationId !== undefined && codeOf(error)?.startsWith('CONVERSATION_')) return undefined
      throw error
    }
  }

  async #hasConversation(conversationId: string, ctx: CallContext): Promise<boolean> {
    const { conversations } = this.#options
    if (!conversations) return true
    try {
      const open = await conversations.begin({ conversationId, waitMs: 0, history: 0 }, ctx)
      await conversations.end(open.ticket, ctx)
      return true
    } catch (error) {
      if (codeOf(error) === 'CONVERSATION_UNKNOWN') return false
      if (codeOf(error)?.startsWith('CONVERSATION_')) return true
      throw error
    }
  }

  /** Deletes a response, and its conversation if no other response belongs to it. */
  async remove(found: FoundResponse): Promise<void> {
    const { store, lasting } = this.#options
    await store.batch(removalOps(found), {}, lasting)
    const { conversation } = found.record
    if (conversation !== undefined) await this.#removeConversation(conversation)
  }

  async #removeConversation(conversation: string): Promise<void> {
    const { store, conversations, lasting } = this.#options
    const { records } = await store.range(RESPONSES, { index: 'by_conversation', equals: [conversation], limit: 1 }, lasting)
    if (records.length > 0) return
    await store.batch([{ op: 'delete', collection: CONVERSATIONS, key: conversation }], {}, lasting)
    try {
      await conversations?.delete(conversation, lasting)
    } catch (error) {
      if (codeOf(error) !== 'CONVERSATION_UNKNOWN') throw error
    }
  }

  /** Deletes some expired responses. Returns false if there can be more. */
  async sweep(): Promise<boolean> {
    const { store, lasting } = this.#options
    const { records } = await store.range(RESPONSES, { index: 'by_expiry', to: Date.now(), limit: SWEPT }, lasting)
    const expired = records.map(({ key, version, value }) => ({
      hex: key,
      version,
      record: value as unknown as StoredResponse,
    }))
    // most have no conversation
    const [some, plain] = [
      expired.filter(({ record }) => record.conversation),
      expired.filter(({ record }) => !record.conversation),
    ]
    if (plain.length > 0) await store.batch(plain.flatMap(removalOps), {}, lasting)
    for (const found of some) await this.remove(found)
    return records.length < SWEPT
  }
}

const removalOps = ({ hex }: FoundResponse): StoreOp[] => [
  { op: 'delete', collection: RESPONSES, key: hex },
  { op: 'delete', collection: DATA, key: hex },
  { op: 'drop', log: EVENTS, id: hex },
]

export const idOf = ({ hex }: FoundResponse): string => responseId(hex)
