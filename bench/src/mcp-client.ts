import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { compared } from './compare.ts'
import type { Options } from './options.ts'
import type { Figure } from './report.ts'
import { interleave } from './rounds.ts'

const CALLS = 8_000
const NAMES = ['ours', 'sdk', 'hand'] as const
type Name = (typeof NAMES)[number]

/**
 * Calls of a tool over stdio, 16 at once: our client, the SDK's, and JSON-RPC by hand. Measures the processor time of the
 * caller.
 */
export async function* client({ svc, rounds }: Options): AsyncGenerator<Figure> {
  const flags = svc.filter(word => word.startsWith('--conditions'))
  const programs = {} as Record<Name, ChildProcess>
  for (const name of NAMES) programs[name] = await start(name, flags)
  try {
    for (const name of NAMES) await cost(programs[name])
    const costs = await interleave<Name>(
      { ours: () => cost(programs.ours), sdk: () => cost(programs.sdk), hand: () => cost(programs.hand) },
      rounds
    )
    const rest = { bench: 'mcp', unit: 'µs CPU', better: 'less' } as const
    const what = 'a call through the client, stdio, 16 at once'
    yield { ...rest, ...compared(what, costs, 'ours', 'sdk'), anchor: "the SDK's own client" }
    yield { ...rest, ...compared(what, costs, 'ours', 'hand'), anchor: 'JSON-RPC by hand' }
  } finally {
    for (const program of Object.values(programs)) program.disconnect()
  }
}

async function start(name: Name, flags: readonly string[]): Promise<ChildProcess> {
  const program = fork(fileURLToPath(new URL('../peers/mcp-calls.js', import.meta.url)), [name], { execArgv: [...flags] })
  await once(program, 'message')
  return program
}

async function cost(program: ChildProcess): Promise<number> {
  program.send(CALLS)
  const [answer] = (await once(program, 'message')) as [number]
  return answer
}
