import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { Workspace } from './svc.ts'
import { SVC } from './entry.ts'

interface Answer {
  readonly id?: number
  readonly result?: Record<string, unknown>
}

/** A client of the tool protocol at the standard input and output of a command. */
export function talk(workspace: Workspace, args: readonly string[]) {
  const child = spawn(process.execPath, [...SVC, ...args], {
    cwd: workspace.folder,
    env: { PATH: process.env.PATH, SVC_HOME: workspace.home },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const errors = text(child.stderr)
  const ended = once(child, 'close')
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout }).on('line', line => lines.push(line))
  return {
    process: child,
    /** Every line of its standard output. */
    lines,
    send: (message: object) => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    /** The answer to a request. */
    async answer(id: number): Promise<Answer> {
      for (;;) {
        const found = lines.map(line => JSON.parse(line) as Answer).find(item => item.id === id)
        if (found) return found
        await Promise.race([
          once(reader, 'line'),
          ended.then(async () => Promise.reject(new Error(`it ended:\n${await errors}`))),
        ])
      }
    },
    /** Its exit code and what it wrote to the standard error stream. */
    async end(how: 'input' | NodeJS.Signals) {
      if (how === 'input') child.stdin.end()
      else child.kill(how)
      const [code] = (await ended) as [number | null]
      return { code, err: await errors }
    },
  }
}

export const INITIALIZE = {
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}
