import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, Client } from './client.ts'
import { createClient } from './client.ts'
import { type History, historyProblems, saidIn } from './history.ts'

/**
 * What a dead server held runs out after a second, not after half a minute: else the turns of the next round wait for it. And the model is given all
 * turns, so that each reply tells its place.
 */
export const CRASH_ENV = { SVC_CONVERSATIONS__LEASE_MS: '1000', SVC_CHAT__HISTORY_TURNS: '1000000' }

/** One conversation as its clients know it. */
interface Known {
  readonly id: string
  /** What was said and answered with 200, in the order of the answers. */
  readonly acknowledged: string[]
}

/** What clients said, and what came back: the measure of what must be there after a crash. */
export interface Ledger {
  readonly known: Map<string, Known>
  /** All that was ever sent; what was not acknowledged may be there or not. */
  readonly sent: Set<string>
  acknowledged: number
}

export const newLedger = (): Ledger => ({ known: new Map(), sent: new Set(), acknowledged: 0 })

/** Clients that post turns until their service is gone: to new conversations, to older ones of their own, to one that all share. */
export interface Load {
  /** Resolves when so many turns of this load are acknowledged. Rejects on an answer that is no acknowledgement. */
  reached(turns: number): Promise<void>
  /** Resolves when every client has seen its connection break. */
  broken(): Promise<void>
  /** Lets each client end its turn; resolves when all have. */
  end(): Promise<void>
}

interface LoadOptions {
  readonly clients: number
  readonly seed: number
  /**
   * The clients of a cluster: a turn that is refused, or whose connection breaks, is not acknowledged, and the next one follows. Gets what
   * came instead of an answer.
   */
  readonly onRefusal?: (reason: string) => void
}

export function startLoad(url: string, ledger: Ledger, { clients, seed, onRefusal }: LoadOptions): Load {
  const client = createClient(url)
  const goals: { at: number; done: PromiseWithResolvers<void> }[] = []
  const begin = ledger.acknowledged
  let ended = false
  const notify = () => {
    for (const { at, done } of goals) if (ledger.acknowledged - begin >= at) done.resolve()
  }
  const running = Array.from({ length: clients }, (_, number) =>
    runClient(client, ledger, { number, seed, notify, ended: () => ended, onRefusal }).catch((error: unknown) => {
      for (const { done } of goals) done.reject(error)
      throw error
    })
  )
  const all = Promise.all(running)
  all.catch(() => {})
  return {
    reached(turns) {
      const done = Promise.withResolvers<void>()
      goals.push({ at: turns, done })
      notify()
      return done.promise
    },
    async broken() {
      await all
      client.close()
    },
    async end() {
      ended = true
      await all
      client.close()
    },
  }
}

/** The conversation of all: another one every ten seeds, before it has as many messages as one may have. */
const sharedIn = (seed: number) => `shared/${Math.floor(seed / 10)}`

interface LoadClient extends Pick<LoadOptions, 'seed'> {
  readonly number: number
  readonly notify: () => void
  readonly ended: () => boolean
  readonly onRefusal: LoadOptions['onRefusal'] | undefined
}

async function runClient(client: Client, ledger: Ledger, { number, seed, notify, ended, onRefusal }: LoadClient): Promise<void> {
  const random = randomOf(seed * 1000 + number)
  const own = [...ledger.known].filter(([name]) => name.startsWith(`${number}/`)).map(([name]) => name)
  for (let turn = 0; !ended(); turn++) {
    const message = `s${seed} c${number} t${turn}`
    const name = nameFor(random(), own, seed)
    const known = name === undefined ? undefined : ledger.known.get(name)
    ledger.sent.add(message)
    const answer = await client.post('/api/v1/chat', { message, ...(known ? { conversation_id: known.id } : {}) }).catch(isGone)
    if (onRefusal && (!answer || REFUSED.includes(answer.status))) {
      onRefusal(answer ? `${answer.status} ${answer.text.slice(0, 200)}` : 'the connection broke')
      await sleep(REST_MS)
      continue
    }
    if (!answer) return
    if (answer.status !== 200) throw new Error(`not acknowledged: ${answer.status} ${answer.text}`)
    const where = known ?? begun(ledger, name ?? `${number}/${seed}/${turn}`, answer, own)
    where.acknowledged.push(message)
    ledger.acknowledged++
    notify()
  }
}

/** A third of the turns begin a conversation, a third go on with an own one, a third go to the one that all share. */
function nameFor(die: number, own: readonly string[], seed: number): string | undefined {
  if (die < 1 / 3) return sharedIn(seed)
  if (die < 2 / 3 && own.length > 0) return own[Math.floor(die * 1e6) % own.length]
  return undefined
}

function begun(ledger: Ledger, name: string, answer: Answer, own: string[]): Known {
  const { conversation_id: id } = answer.body as { conversation_id: string }
  // another client may have begun the shared one meanwhile: then this is a conversation like any other
  const key = ledger.known.has(name) ? `${name}/${id}` : name
  const made: Known = { id, acknowledged: [] }
  ledger.known.set(key, made)
  if (!key.startsWith('shared/') || key !== name) own.push(key)
  return made
}

/** What a node answers that has lost its store, or a balancer whose node has died. */
const REFUSED = [502, 503, 504]
const REST_MS = 50
const GONE = ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ABORT_ERR', 'ECONNABORTED']

function isGone(error: NodeJS.ErrnoException): undefined {
  if (GONE.includes(error.code ?? '') || error.message === 'aborted') return undefined
  throw error
}

/** mulberry32: the same seed, the same load. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** What is wrong with the store after a crash: turns lost, torn, doubled, out of order, or made up. */
export async function auditLedger(url: string, ledger: Ledger): Promise<string[]> {
  const client = createClient(url)
  try {
    const lost = await Promise.all([...ledger.known.values()].map(known => auditKnown(client, ledger, known)))
    return [...lost.flat(), ...(await auditAll(client, ledger))]
  } finally {
    client.close()
  }
}

async function auditKnown(client: Client, ledger: Ledger, { id, acknowledged }: Known): Promise<string[]> {
  const answer = await client.get(`/api/v1/conversations/${id}`)
  if (answer.status !== 200) return [`${id} with ${acknowledged.length} acknowledged turns is gone: ${answer.status}`]
  const history = answer.body as History
  const said = saidIn(history)
  const places = acknowledged.map(message => said.indexOf(message))
  return [
    ...auditHistory(history, ledger),
    ...acknowledged.filter((_, at) => places[at] === -1).map(message => `${id} has lost "${message}"`),
    ...ordered(acknowledged, places).map(message => `${id} has "${message}" out of order`),
  ]
}

/** Of one client: the answers of several may come in another order than their turns ended in. */
function ordered(messages: readonly string[], places: readonly number[]): string[] {
  const last = new Map<string, number>()
  return messages.filter((message, at) => {
    const who = message.replace(/ t\d+$/, '')
    const before = last.get(who) ?? -1
    last.set(who, places[at]!)
    return places[at]! !== -1 && places[at]! < before
  })
}

const auditHistory = (history: History, { sent }: Ledger): string[] => [
  ...historyProblems(history),
  ...saidIn(history)
    .filter(message => !sent.has(message))
    .map(message => `${history.conversation_id} has "${message}", which nobody sent`),
]

/** Also those whose first answer never came. */
async function auditAll(client: Client, ledger: Ledger): Promise<string[]> {
  const problems: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await client.get(
      `/api/v1/conversations?limit=200${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
    )
    const { conversations, next_cursor } = page.body as {
      conversations: { conversation_id: string; message_count: number }[]
      next_cursor: string | null
    }
    for (const { conversation_id: id, message_count } of conversations) {
      const record = (await client.get(`/api/v1/conversations/${id}`)).body as History
      problems.push(...auditHistory(record, ledger))
      if (record.message_count !== message_count)
        problems.push(`${id} is listed with ${message_count} messages, has ${record.message_count}`)
    }
    cursor = next_cursor
  }
  return problems
}
