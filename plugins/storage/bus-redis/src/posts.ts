import { setTimeout as sleep } from 'node:timers/promises'
import type { BusRedis } from './scripts.ts'

/** How long a post waits for Redis, or for its receiver. */
const RETRY_MS = 5_000
const [FIRST_MS, LONGEST_MS] = [20, 500]
/** Most posts of one script. */
const GROUP = 100

export const EVERYONE = '@all'
export const channelOf = (receiver: string): string => `bus:to:${receiver}`

/** ARGV: posts. Returns the least number of connections that got one. */
const PUBLISH = `
local least
for _, post in ipairs(ARGV) do
  local count = redis.call('PUBLISH', KEYS[1], post)
  least = math.min(least or count, count)
end
return least
`

interface Waiting {
  readonly text: string
  readonly settle: PromiseWithResolvers<void>
}

/** The posts to one receiver. */
interface Outbox {
  n: number
  waiting: Waiting[]
  running: Promise<void> | undefined
  /** A post was lost for good, and the receiver possibly does not know it. */
  isBroken: boolean
}

/**
 * Sends the posts of this worker. Those to one receiver have consecutive numbers, so it knows what it has missed, and ignores what
 * comes twice. Posts that wait are one script.
 */
export class PostSender {
  readonly #redis: BusRedis
  readonly #self: string
  readonly #outboxes = new Map<string, Outbox>()

  constructor(redis: BusRedis, self: string) {
    this.#redis = redis
    this.#self = self
  }

  /** Resolves when Redis has sent the post. Posts to one receiver take effect in the order of the calls. */
  send(receiver: string, body: unknown): Promise<void> {
    const outbox: Outbox = this.#outboxes.get(receiver) ?? { n: 0, waiting: [], running: undefined, isBroken: false }
    this.#outboxes.set(receiver, outbox)
    const settle = Promise.withResolvers<void>()
    outbox.n += 1
    outbox.waiting.push({ text: JSON.stringify([this.#self, outbox.n, body]), settle })
    outbox.running ??= this.#flush(receiver, outbox)
    return settle.promise
  }

  /** Resolves when all posts are sent, or have failed. */
  async idle(): Promise<void> {
    await Promise.all([...this.#outboxes.values()].flatMap(({ running }) => running ?? []))
  }

  /** Tells receivers of lost posts the present number, so that they know. */
  repair(): void {
    for (const [receiver, outbox] of this.#outboxes) if (outbox.isBroken) this.send(receiver, null).catch(() => {})
  }

  /** Forgets a receiver that has gone. */
  forget(receiver: string): void {
    if (this.#outboxes.get(receiver)?.running === undefined) this.#outboxes.delete(receiver)
  }

  async #flush(receiver: string, outbox: Outbox): Promise<void> {
    await Promise.resolve() // posts of the same turn share a script
    while (outbox.waiting.length > 0) {
      const group = outbox.waiting.splice(0, GROUP)
      try {
        const texts = group.map(({ text }) => text)
        await this.#publish(receiver, texts)
        outbox.isBroken = false
        for (const { settle } of group) settle.resolve()
      } catch (error) {
        outbox.isBroken = true
        for (const { settle } of group) settle.reject(error)
      }
    }
    outbox.running = undefined
  }

  /** Tries again while Redis fails, and while one receiver does not listen, because its connection is being replaced. */
  async #publish(receiver: string, texts: readonly string[]): Promise<void> {
    const until = performance.now() + RETRY_MS
    for (let ms = FIRST_MS; ; ms = Math.min(ms * 2, LONGEST_MS)) {
      const count = Number(await this.#redis.run(PUBLISH, [channelOf(receiver)], texts, Math.max(0, until - performance.now())))
      if (count > 0 || receiver === EVERYONE || performance.now() + ms > until) return
      await sleep(ms, undefined, { ref: false })
    }
  }
}

export interface PostReceiverOptions {
  readonly self: string
  deliver(sender: string, isToAll: boolean, body: unknown): void
  /** Posts that this worker will never get. */
  missed(sender: string, count: number): void
}

/** Receives posts in the order of each sender. */
export class PostReceiver {
  readonly #options: PostReceiverOptions
  /** The number of the last post, by channel and sender. */
  readonly #places = new Map<string, number>()

  constructor(options: PostReceiverOptions) {
    this.#options = options
  }

  take(channel: string, text: string): void {
    const post = postIn(text)
    if (!post || post.sender === this.#options.self) return
    const { sender, n, body } = post
    const key = `${channel}\n${sender}`
    const last = this.#places.get(key)
    if (last !== undefined && n <= last) return
    this.#places.set(key, n)
    if (last !== undefined && n > last + 1) this.#options.missed(sender, n - last - 1)
    if (body !== null) this.#options.deliver(sender, channel === channelOf(EVERYONE), body)
  }

  /** The connection was replaced: the next post of each sender is the first that counts. */
  reset(): void {
    this.#places.clear()
  }

  forget(sender: string): void {
    for (const key of this.#places.keys()) if (key.endsWith(`\n${sender}`)) this.#places.delete(key)
  }
}

/** A post; undefined if another program has sent something else. */
function postIn(text: string): { readonly sender: string; readonly n: number; readonly body: unknown } | undefined {
  try {
    const [sender, n, body] = JSON.parse(text) as unknown[]
    return typeof sender === 'string' && typeof n === 'number' ? { sender, n, body } : undefined
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined
    throw error
  }
}
