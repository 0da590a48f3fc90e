import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** What a client saw of its connection. */
export type Seen = 'answered' | 'reset' | 'refused' | 'hung'

/** Connects, asks once, and waits for the end of the connection. */
export async function askOnce(port: number, path = '/', limitMs = 20_000): Promise<Seen> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  let failure: string | undefined
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk))
  socket.on('error', (error: NodeJS.ErrnoException) => (failure = error.code))
  socket.on('connect', () => socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`))
  const timer = setTimeout(() => socket.destroy(Object.assign(new Error('no end'), { code: 'HUNG' })), limitMs)
  await new Promise(resolve => socket.on('close', resolve))
  clearTimeout(timer)
  if (text.startsWith('HTTP/1.1 200 ')) return 'answered'
  if (failure === 'HUNG') return 'hung'
  return failure === 'ECONNREFUSED' ? 'refused' : 'reset'
}

export function countSeen(seen: readonly Seen[]): Record<Seen, number> {
  const count = { answered: 0, reset: 0, refused: 0, hung: 0 }
  for (const item of seen) count[item]++
  return count
}

/** Clients that ask again and again, each time on a new connection. */
export function askOn(port: number, clients: number, path?: string) {
  const seen: Seen[] = []
  let isOver = false
  const running = Array.from({ length: clients }, async () => {
    while (!isOver) seen.push(await askOnce(port, path))
  })
  return {
    /** Resolves when so many more connections have ended. */
    async more(count: number) {
      const goal = seen.length + count
      while (seen.length < goal) await new Promise(resolve => setImmediate(resolve))
    },
    /** Resolves with what all of them saw. */
    async end() {
      isOver = true
      await Promise.all(running)
      return countSeen(seen)
    },
  }
}

/** Connects and says nothing. */
export async function openSilent(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}
