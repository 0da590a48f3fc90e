import { setImmediate } from 'node:timers/promises'
import type { SqlStatement } from '@svc/core/contracts'
import { type BusSql, channelOf, notify, NOW } from './sql.ts'

/** How long a post is kept for receivers whose connection was cut. */
const KEPT_MS = 60_000
/** How long a post waits for the database. */
const RETRY_MS = 5_000
/** Most posts, and about as many characters, of one statement. */
const [GROUP, GROUP_CHARS] = [500, 1_000_000]
/** Most bytes of a notification: PostgreSQL allows 7,999. */
const INLINE = 7_900

/** The body of a post that says only that there were others. */
const NOTHING = 'null'

interface Waiting {
  readonly receiver: string
  readonly body: string
  readonly settle: PromiseWithResolvers<void>
}

/** Posts of one sender to one receiver that follow each other. */
interface Stream {
  readonly first: number
  readonly bodies: string[]
}

/**
 * Sends the posts of this worker. The posts to each receiver have consecutive numbers, so that a receiver knows what it has missed.
 * Those that wait are one insert; the notification comes after its commit and contains small posts itself.
 */
export class PostSender {
  readonly #sql: BusSql
  readonly #self: string
  readonly #numbers = new Map<string, number>()
  /** Receivers of posts that could not be sent. */
  readonly #broken = new Set<string>()
  #waiting: Waiting[] = []
  #running: Promise<void> | undefined

  constructor(sql: BusSql, self: string) {
    this.#sql = sql
    this.#self = self
  }

  /** Resolves when receivers can read the post. Posts take effect in the order of the calls. */
  send(receiver: string, body: string): Promise<void> {
    const settle = Promise.withResolvers<void>()
    this.#waiting.push({ receiver, body, settle })
    this.#running ??= this.#flush()
    return settle.promise
  }

  /** Resolves when all posts are sent. */
  async idle(): Promise<void> {
    await this.#running
  }

  /** Sends an empty post to receivers of lost ones: its number tells them. */
  repair(): void {
    for (const receiver of this.#broken) this.send(receiver, NOTHING).catch(() => {})
  }

  async #flush(): Promise<void> {
    await setImmediate() // posts of the same turn share an insert
    while (this.#waiting.length > 0) {
      const group = this.#group()
      try {
        await this.#sql.run(this.#statements(group), RETRY_MS)
        for (const { receiver, settle } of group) {
          this.#broken.delete(receiver)
          settle.resolve()
        }
      } catch (error) {
        for (const { receiver, settle } of group) {
          this.#broken.add(receiver)
          settle.reject(error)
        }
      }
    }
    this.#running = undefined
  }

  #group(): Waiting[] {
    let chars = 0
    const end = this.#waiting.findIndex(({ body }, at) => at > 0 && (at >= GROUP || (chars += body.length) > GROUP_CHARS))
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end)
  }

  #statements(group: readonly Waiting[]): SqlStatement[] {
    const streams = new Map<string, Stream>()
    const numbers = group.map(({ receiver, body }) => {
      const n = (this.#numbers.get(receiver) ?? 0) + 1
      this.#numbers.set(receiver, n)
      const stream = streams.get(receiver) ?? { first: n, bodies: [] }
      stream.bodies.push(body)
      streams.set(receiver, stream)
      return n
    })
    const notices = [...streams].flatMap(([receiver, stream]) =>
      noticesOf(this.#self, stream).map(payload => [channelOf(this.#sql, receiver), payload] as const)
    )
    return [
      {
        text: `INSERT INTO ${this.#sql.s}.bus_posts(receiver, sender, n, body, at)
          SELECT u.receiver, $1, u.n, u.body, ${NOW} FROM unnest($2::text[], $3::bigint[], $4::text[]) AS u(receiver, n, body) ON CONFLICT DO NOTHING`,
        values: [this.#self, group.map(({ receiver }) => receiver), numbers, group.map(({ body }) => body)],
      },
      notify(
        notices.map(([channel]) => channel),
        notices.map(([, payload]) => payload)
      ),
    ]
  }
}

/** The payloads for a stream: sender, first number and count in a line each, then the bodies if they fit. JSON has no line breaks. */
function noticesOf(sender: string, { first, bodies }: Stream): string[] {
  const notices: string[] = []
  for (let at = 0; at < bodies.length; ) {
    const head = (count: number) => `${sender}\n${first + at}\n${count}`
    let bytes = Buffer.byteLength(head(GROUP))
    let end = at
    while (end < bodies.length && (bytes += 1 + Buffer.byteLength(bodies[end]!)) <= INLINE) end++
    notices.push(end === at ? head(1) : [head(end - at), ...bodies.slice(at, end)].join('\n'))
    at = Math.max(end, at + 1)
  }
  return notices
}

export interface PostReceiverOptions {
  readonly sql: BusSql
  readonly self: string
  /** To whom the posts are that this worker reads. */
  readonly receivers: readonly string[]
  deliver(sender: string, receiver: string, body: string): void
  /** Posts that this worker will never get. */
  missed(sender: string, count: number): void
  failed(error: unknown): void
}

const PAGE = 200

/** Receives posts in the order of each sender: from notifications, and from the table what they do not contain. */
export class PostReceiver {
  readonly #options: PostReceiverOptions
  /** The number of the last post, by receiver and sender, when it came, and whether a gap after it is known already. */
  readonly #places = new Map<string, { readonly n: number; readonly at: number; readonly isBroken?: boolean }>()
  #turn: Promise<void> = Promise.resolve()

  constructor(options: PostReceiverOptions) {
    this.#options = options
  }

  /** Skips all posts so far. */
  async begin(): Promise<void> {
    const { sql, self, receivers } = this.#options
    const [found] = await sql.run([
      {
        text: `SELECT receiver, sender, max(n) AS n FROM ${sql.s}.bus_posts WHERE receiver = ANY($1::text[]) AND sender <> $2 GROUP BY receiver, sender`,
        values: [receivers, self],
      },
    ])
    for (const { receiver, sender, n } of found!.rows) this.#setPlace(String(receiver), String(sender), Number(n))
  }

  /** Takes a notification to a receiver. */
  notified(receiver: string, payload: string): void {
    const [sender = '', first, count, ...bodies] = payload.split('\n')
    if (sender !== this.#options.self) this.#inOrder(() => this.#take(receiver, sender, [Number(first), Number(count)], bodies))
  }

  /** Reads everything that has come: notifications can be lost. */
  catchUp(): void {
    this.#inOrder(() => this.#readAll())
  }

  /** The tables were emptied: gaps so far are known, and posts from now on are after them. */
  reset(): void {
    for (const [key, place] of this.#places) this.#places.set(key, { ...place, isBroken: true })
  }

  /** Forgets senders that no longer send. */
  tidy(isMember: (sender: string) => boolean): void {
    const before = performance.now() - 2 * KEPT_MS
    for (const [key, { at }] of this.#places) if (at < before && !isMember(key.split('\n')[1]!)) this.#places.delete(key)
  }

  #inOrder(work: () => Promise<void>): void {
    this.#turn = this.#turn.then(work).catch((error: unknown) => this.#options.failed(error))
  }

  #place(receiver: string, sender: string): number {
    return this.#places.get(`${receiver}\n${sender}`)?.n ?? 0
  }

  #setPlace(receiver: string, sender: string, n: number): void {
    this.#places.set(`${receiver}\n${sender}`, { n, at: performance.now() })
  }

  #accept(receiver: string, sender: string, n: number, body: string): void {
    const place = this.#place(receiver, sender)
    if (n <= place) return
    if (place > 0 && n > place + 1) this.#missed(receiver, sender, n - place - 1)
    this.#setPlace(receiver, sender, n)
    this.#options.deliver(sender, receiver, body)
  }

  async #take(receiver: string, sender: string, [first, count]: readonly [number, number], bodies: readonly string[]) {
    const place = this.#place(receiver, sender)
    const last = first + count - 1
    if (last <= place) return
    if (bodies.length === count && first <= place + 1)
      return bodies.forEach((body, at) => this.#accept(receiver, sender, first + at, body))
    await this.#read(receiver, sender, last)
    const reached = this.#place(receiver, sender)
    if (reached >= last) return
    // the table was emptied
    bodies.forEach((body, at) => this.#accept(receiver, sender, first + at, body))
    if (this.#place(receiver, sender) >= last) return
    this.#missed(receiver, sender, last - reached)
    this.#setPlace(receiver, sender, last)
  }

  #missed(receiver: string, sender: string, count: number): void {
    const isKnown = this.#places.get(`${receiver}\n${sender}`)?.isBroken === true
    if (!isKnown) this.#options.missed(sender, count)
  }

  /** Reads the posts of one sender up to `last`. */
  async #read(receiver: string, sender: string, last: number): Promise<void> {
    const { sql } = this.#options
    for (let hasMore = true; hasMore; ) {
      const [found] = await sql.run(
        [
          {
            text: `SELECT n, body FROM ${sql.s}.bus_posts WHERE receiver = $1 AND sender = $2 AND n > $3 ORDER BY n LIMIT ${PAGE}`,
            values: [receiver, sender, this.#place(receiver, sender)],
          },
        ],
        RETRY_MS
      )
      for (const { n, body } of found!.rows) this.#accept(receiver, sender, Number(n), String(body))
      hasMore = found!.rows.length === PAGE && this.#place(receiver, sender) < last
    }
  }

  async #readAll(): Promise<void> {
    const { sql, self, receivers } = this.#options
    for (let hasMore = true; hasMore; ) {
      const keys = [...this.#places].map(([key, { n }]) => [...key.split('\n'), n] as unknown as [string, string, number])
      const [found] = await sql.run(
        [
          {
            text: `SELECT p.receiver, p.sender, p.n, p.body FROM ${sql.s}.bus_posts p
              LEFT JOIN unnest($1::text[], $2::text[], $3::bigint[]) AS k(receiver, sender, n) ON k.receiver = p.receiver AND k.sender = p.sender
              WHERE p.receiver = ANY($4::text[]) AND p.sender <> $5 AND p.n > coalesce(k.n, 0) ORDER BY p.receiver, p.sender, p.n LIMIT ${PAGE}`,
            values: [keys.map(([key]) => key), keys.map(([, key]) => key), keys.map(([, , n]) => n), receivers, self],
          },
        ],
        RETRY_MS
      )
      for (const { receiver, sender, n, body } of found!.rows)
        this.#accept(String(receiver), String(sender), Number(n), String(body))
      hasMore = found!.rows.length === PAGE
    }
  }
}

/** Deletes posts that all receivers have had time to read. */
export const pruneIn = (s: string): SqlStatement => ({
  text: `DELETE FROM ${s}.bus_posts WHERE at < ${NOW} - ${KEPT_MS}`,
})
