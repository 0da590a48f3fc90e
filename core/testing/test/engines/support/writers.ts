import { once } from 'node:events'
// @ts-expect-error its types are a package of their own
import pg from 'pg'

interface Client {
  connect(): Promise<void>
  query(sql: string | { readonly name: string; readonly text: string }, values?: unknown[]): Promise<unknown>
  end(): Promise<void>
  on(event: 'error' | 'notification', heard: () => void): void
}

/** A client whose lost connection is no uncaught error: its statements report it. */
export async function connectClient(url: string): Promise<Client> {
  const client = new pg.Client({ connectionString: url }) as Client
  client.on('error', () => {})
  await client.connect()
  return client
}

export const failureText = (error: unknown): string =>
  error instanceof AggregateError ? error.errors.map(String).join() : error instanceof Error ? error.message : String(error)

/**
 * Eight clients that write rows into `acknowledged (n)` until their connection breaks. Returns when `enough` rows are
 * acknowledged; `broken` waits for the end of all clients and returns the acknowledged numbers.
 */
export async function writeUntil(url: string, { first, enough }: { first: number; enough: number }) {
  const acknowledged: number[] = []
  const reached = new EventTarget()
  let next = first
  const write = async () => {
    const client = await connectClient(url)
    try {
      for (;;) {
        const n = next++
        await client.query('INSERT INTO acknowledged VALUES ($1)', [n])
        acknowledged.push(n)
        if (acknowledged.length === enough) reached.dispatchEvent(new Event('enough'))
      }
    } catch {
      await client.end().catch(() => {})
    }
  }
  const all = Promise.all(Array.from({ length: 8 }, write))
  await once(reached as unknown as NodeJS.EventEmitter, 'enough')
  return {
    async broken(): Promise<readonly number[]> {
      await all
      return acknowledged
    },
  }
}
