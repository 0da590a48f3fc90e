import { wait } from './wait.ts'
import { type Client, createClient } from './client.ts'

/** Steady load of all kinds while a server reloads: what failed, and how much was done. */
export interface ReloadLoad {
  readonly failures: readonly string[]
  readonly done: { requests: number; streams: number }
  /** Resolves when so many more requests have been answered. */
  more(requests: number): Promise<void>
  /** Ends the load; resolves when everything has been answered. */
  stop(): Promise<void>
}

export interface ReloadLoadOptions {
  /** Milliseconds between two tokens of a stream. */
  readonly paceMs?: number
  /** Leaves the processor to what reloads: between two requests of the same kind there is a breath. */
  readonly gentle?: true
}

/** Then the load ends: the server is gone. */
const ENOUGH = 20

/** Chat turns and reads over connections that are kept, and over new ones; and streams that take longer than a reload. */
export function startReloadLoad(url: string, { paceMs = 40, gentle }: ReloadLoadOptions = {}): ReloadLoad {
  const failures: string[] = []
  const done = { requests: 0, streams: 0 }
  const goals: { at: number; reached: () => void }[] = []
  let stopped = false
  const kept = createClient(url)
  const anew = createClient(url, { keepAlive: false })
  const note = (what: string, ok: boolean, text: string) => {
    done.requests++
    if (!ok) failures.push(`${what}: ${text.slice(0, 300)}`)
    for (const goal of goals) if (done.requests >= goal.at || failures.length >= ENOUGH) goal.reached()
  }
  const again = async (what: string, work: () => Promise<{ ok: boolean; text: string }>) => {
    while (!stopped && failures.length < ENOUGH) {
      const { ok, text } = await work().catch((error: unknown) => ({ ok: false, text: String(error) }))
      note(what, ok, text)
      if (gentle) await wait()
    }
  }
  const running = [
    ...[kept, anew].flatMap(client => [
      again('chat', () => chat(client)),
      again('read', () => read(client, '/api/v1/status')),
      again('ready', () => read(client, '/health/ready')),
    ]),
    again('stream', async () => {
      const ended = await stream(anew, paceMs)
      done.streams++
      return ended
    }),
  ]
  return {
    failures,
    done,
    more: requests =>
      new Promise(reached => {
        goals.push({ at: done.requests + requests, reached })
      }),
    async stop() {
      stopped = true
      await Promise.all(running)
      kept.close()
    },
  }
}

async function chat(client: Client) {
  const { status, text } = await client.post('/api/v1/chat', { message: 'hello' })
  return { ok: status === 200, text: `${status} ${text}` }
}

async function read(client: Client, path: string) {
  const { status, text } = await client.get(path)
  return { ok: status === 200, text: `${status} ${text}` }
}

/** One that ends by itself, whatever is reloaded meanwhile. */
async function stream(client: Client, paceMs: number) {
  const body = { message: `/pace ${paceMs}\n${'one two three four five six seven eight nine ten '.repeat(5)}` }
  const opened = await client.stream({ method: 'POST', path: '/api/v1/chat/stream', body })
  const { text, events } = await opened.rest()
  const last = events.at(-1)
  return {
    ok: last?.event === 'end' && JSON.stringify(last).includes('completed'),
    text: `${opened.status} ${text} ${JSON.stringify(last)}`,
  }
}
