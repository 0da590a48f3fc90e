import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '@svc/core'
import { Redis } from 'ioredis'
import { closed, redisError } from './errors.ts'

export interface ConnectionOptions {
  readonly host: string
  readonly port: number
  readonly db: number
  readonly user?: string
  readonly password?: string | (() => Promise<string>)
  /** Options of `node:tls`. */
  readonly tls: object | false
  readonly connectMs: number
  /** Without an answer in this time, the connection is replaced. */
  readonly commandMs: number
  /** How long callers wait for a connection after its loss. */
  readonly waitMs: number
}

const [FIRST_MS, LONGEST_MS] = [50, 1_000]
/** A server that is silent does not close its side. */
const CLOSE_MS = 200
/** An idle connection is checked so often: a network can lose packets without an error. */
const PING_MS = 3_000

/**
 * One connection to Redis, which is replaced when it fails. Each has a client of its own, because the password can be another one. A
 * command is sent once: after a loss, only its caller knows whether to repeat it.
 */
export class Connection implements AsyncDisposable {
  readonly #options: ConnectionOptions
  readonly #name: string
  /** Host and port, for errors. */
  readonly server: string
  readonly #log: Log
  readonly #opened: (client: Redis) => Promise<void>
  readonly #ending = new AbortController()
  #client: Redis | undefined
  #waiting = Promise.withResolvers<void>()
  /** When the connection was lost, or the first attempt began. */
  #lostAt = performance.now()
  #problem: unknown
  /** The log has the present loss. */
  #isReported = false
  #running: Promise<void> | undefined
  readonly #tried = Promise.withResolvers<void>()

  /** `opened` prepares each new connection. */
  constructor(options: ConnectionOptions, name: string, log: Log, opened: (client: Redis) => Promise<void> = async () => {}) {
    this.#options = options
    this.#name = name
    this.server = `${options.host.includes(':') ? `[${options.host}]` : options.host}:${options.port}`
    this.#log = log
    this.#opened = opened
  }

  /** Connects, now and after each loss. Resolves when the first attempt has succeeded or failed. */
  start(): Promise<void> {
    if (!this.#running) {
      this.#lostAt = performance.now()
      this.#running = this.#run()
    }
    return this.#tried.promise
  }

  /** Why there is no connection; undefined if there is one. */
  get problem(): unknown {
    return this.#client ? undefined : (this.#problem ?? closed())
  }

  /** The client of the open connection. Waits a while after a loss. Throws STORE_UNAVAILABLE. */
  async client(): Promise<Redis> {
    if (this.#ending.signal.aborted) throw closed()
    const tried = this.start()
    // a first attempt has no end while Redis loads its data
    if (!this.#client) await Promise.race([tried, this.#patience(this.#options.connectMs)])
    if (!this.#client) await Promise.race([this.#waiting.promise, this.#patience(0)])
    if (!this.#client) throw redisError(this.#problem, this.server)
    return this.#client
  }

  /** Ends when callers have waited for a connection for long enough, or for `leastMs`. */
  async #patience(leastMs: number): Promise<void> {
    const ms = this.#lostAt + Math.max(this.#options.waitMs, leastMs) - performance.now()
    if (ms > 0) await sleep(ms, undefined, { ref: false })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending
    for (let ms = FIRST_MS; !signal.aborted; ) {
      if (await this.#attempt()) ms = FIRST_MS
      await sleep(ms * (0.5 + Math.random() / 2), undefined, { signal, ref: false }).catch(() => {})
      ms = Math.min(ms * 2, LONGEST_MS)
    }
  }

  /** Connects, and resolves when the connection is lost: to true if it had been open. */
  async #attempt(): Promise<boolean> {
    const ended = Promise.withResolvers<void>()
    let client: Redis | undefined
    const close = () => client && endClient(client)
    this.#ending.signal.addEventListener('abort', close, { once: true })
    try {
      client = await this.#create()
      client.on('error', (error: unknown) => (this.#problem = error))
      client.once('end', () => ended.resolve())
      this.#ending.signal.throwIfAborted()
      await client.connect()
      await this.#opened(client)
      this.#ending.signal.throwIfAborted()
    } catch (error) {
      this.#ending.signal.removeEventListener('abort', close)
      if (client) {
        endClient(client)
        await ended.promise
      }
      // the error event says more than "Connection is closed."
      if (this.#problem === undefined || (error as Error).name === 'ReplyError') this.#problem = error
      this.#report(false)
      this.#tried.resolve()
      return false
    }
    this.#problem = undefined
    this.#report(true)
    this.#client = client
    this.#waiting.resolve()
    this.#tried.resolve()
    await this.#check(client, ended.promise)
    this.#ending.signal.removeEventListener('abort', close)
    this.#waiting = Promise.withResolvers()
    this.#client = undefined
    this.#lostAt = performance.now()
    return true
  }

  /** Logs a loss once, and the return. */
  #report(isOpen: boolean): void {
    if (isOpen === !this.#isReported || this.#ending.signal.aborted) return
    this.#isReported = !isOpen
    if (isOpen) this.#log.info({}, `the ${this.#name} is open`)
    else this.#log.warn({ reason: redisError(this.#problem, this.server).message }, `there is no ${this.#name}`)
  }

  async #create(): Promise<Redis> {
    const { host, port, db, user, password, tls, connectMs, commandMs } = this.#options
    const text = typeof password === 'function' ? await password() : password
    return new Redis({
      host,
      port,
      db,
      ...(user === undefined ? {} : { username: user }),
      ...(text === undefined ? {} : { password: text }),
      ...(tls === false ? {} : { tls }),
      lazyConnect: true,
      retryStrategy: null,
      enableOfflineQueue: false,
      disconnectTimeout: CLOSE_MS,
      connectTimeout: connectMs,
      socketTimeout: commandMs,
      connectionName: 'svc',
    })
  }

  /** Asks for an answer from time to time, until the connection ends. Without one, `socketTimeout` ends it. */
  async #check(client: Redis, ended: Promise<void>): Promise<void> {
    const timer = setInterval(() => void client.ping().catch(() => endClient(client)), PING_MS).unref()
    await ended
    clearInterval(timer)
  }
}

/** A client whose socket is closed already would wait for its end. */
function endClient(client: Redis): void {
  if (client.status !== 'end' && client.status !== 'close') client.disconnect()
}
