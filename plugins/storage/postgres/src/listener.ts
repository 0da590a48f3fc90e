import { setTimeout as sleep } from 'node:timers/promises'
import { withTimeout } from '@svc/core'
import type { Line, Session } from './line.ts'
import { quoted } from './schema.ts'

/** Called with each payload of a channel, and without one when notifications can be lost. */
type Heard = (payload?: string) => void

/** Listens on all channels of this process through one connection, and replaces it when it breaks. */
export interface Listener {
  /** Calls `heard` until the returned function is called; first without a payload, when it listens. */
  listen(channel: string, heard: Heard): () => void
  close(): Promise<void>
}

/** How often an idle connection is tried: one that is half open is silent, so only a statement shows it. */
const TRIED_MS = 5_000
const ANSWER_MS = 5_000
/** How often callers must read while nothing listens: more seldom while that lasts. */
const [POLL_MS, LONGEST_POLL_MS] = [50, 1_000]

/** Creates a listener; the line connects with the first channel. */
export const createListener = (line: Line): Listener => new SharedListener(line)

class SharedListener implements Listener {
  readonly #line: Line
  readonly #channels = new Map<string, Set<Heard>>()
  readonly #ending = new AbortController()
  #loop: Promise<void> | undefined
  /** The connection that listens, and its channels. */
  #open: { readonly session: Session; readonly listened: Set<string> } | undefined
  #matching: Promise<void> = Promise.resolve()

  constructor(line: Line) {
    this.#line = line
  }

  listen(channel: string, heard: Heard): () => void {
    const all = this.#channels.get(channel) ?? new Set<Heard>()
    this.#channels.set(channel, all.add(heard))
    if (this.#open?.listened.has(channel)) heard()
    else void this.#match()
    this.#loop ??= this.#follow()
    return () => {
      all.delete(heard)
      if (all.size > 0 || this.#channels.get(channel) !== all) return
      this.#channels.delete(channel)
      void this.#match()
    }
  }

  async close(): Promise<void> {
    this.#channels.clear()
    this.#ending.abort()
    await this.#line.close()
    await this.#loop
  }

  get #goesOn(): boolean {
    return this.#channels.size > 0 && !this.#ending.signal.aborted
  }

  #hearAll(): void {
    for (const all of this.#channels.values()) for (const heard of all) heard()
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#ending.signal, ref: false }).catch(() => {})
  }

  async #follow(): Promise<void> {
    for (let ms = POLL_MS; this.#goesOn; ms = Math.min(ms * 1.5, LONGEST_POLL_MS)) {
      const didListen = await this.#serve().catch(() => {
        this.#line.drop()
        return false
      })
      if (didListen) ms = POLL_MS
      this.#hearAll()
      await this.#pause(ms)
    }
    this.#loop = undefined
    if (this.#goesOn) this.#loop = this.#follow()
  }

  /** Listens on the open connection until it breaks. Returns false where a pooler hides notifications. */
  async #serve(): Promise<boolean> {
    const session = await this.#line.session()
    const { client, pooled, standby } = session
    if (pooled || standby) return false
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const end = () => resolve()
    const notified = ({ channel, payload }: { readonly channel: string; readonly payload?: string }) =>
      this.#channels.get(channel)?.forEach(heard => heard(payload ?? ''))
    client.on('notification', notified)
    client.on('error', end)
    client.on('end', end)
    this.#open = { session, listened: new Set() }
    try {
      await this.#match()
      while (!session.lost && this.#goesOn) {
        await Promise.race([this.#pause(TRIED_MS), ended])
        if (session.lost || !this.#goesOn) break
        await withTimeout(ANSWER_MS, () => this.#line.one({ text: 'SELECT 1' }))
      }
    } finally {
      client.off('notification', notified)
      client.off('error', end)
      client.off('end', end)
      this.#open = undefined
    }
    if (!session.lost && !this.#line.closed) await this.#line.one({ text: 'UNLISTEN *' })
    return true
  }

  /** Listens on the channels that are wanted, and only on those. */
  #match(): Promise<void> {
    return (this.#matching = this.#matching.then(() => this.#matchNow()).catch(() => this.#line.drop()))
  }

  async #matchNow(): Promise<void> {
    const open = this.#open
    if (!open || open.session.lost) return
    const { listened } = open
    const added = [...this.#channels.keys()].filter(channel => !listened.has(channel))
    const left = [...listened].filter(channel => !this.#channels.has(channel))
    if (added.length + left.length === 0) return
    await this.#line.run([
      ...added.map(channel => [{ text: `LISTEN ${quoted(channel)}` }] as const),
      ...left.map(channel => [{ text: `UNLISTEN ${quoted(channel)}` }] as const),
    ])
    for (const channel of left) listened.delete(channel)
    for (const channel of added) {
      listened.add(channel)
      this.#channels.get(channel)?.forEach(heard => heard())
    }
  }
}
