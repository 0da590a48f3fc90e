// Not a unit test: it starts processes
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { Project } from './editor.ts'

interface Line {
  readonly id?: number | string | null
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}

/** A client without the SDK, for messages that the SDK does not send. */
export function openWire(project: Project, args: readonly string[] = []) {
  const child = project.start(['acp', ...args])
  const err = text(child.stderr!)
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const lines: Line[] = []
  const reader = createInterface({ input: child.stdout! }).on('line', line => lines.push(JSON.parse(line) as Line))
  const find = async (fits: (line: Line) => boolean): Promise<Line> => {
    for (;;) {
      const found = lines.find(fits)
      if (found) return found
      await Promise.race([once(reader, 'line'), closed.then(async () => Promise.reject(new Error(`it ended:\n${await err}`)))])
    }
  }
  const write = (words: string | Buffer) => void child.stdin!.write(words)
  let ids = 100
  return {
    process: child,
    lines,
    find,
    write,
    closed,
    err,
    send: (message: object) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    /** Sends a request, and resolves with its answer. */
    async ask(method: string, params: object = {}): Promise<Line> {
      const id = ++ids
      write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
      return find(line => line.id === id && line.method === undefined)
    },
  }
}

export const INITIALIZE = { protocolVersion: 1, clientCapabilities: {} }
