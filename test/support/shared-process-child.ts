import { AsyncLocalStorage } from 'node:async_hooks'
import { pathToFileURL } from 'node:url'

// Runs the commands of svc that its parent sends, one after the other: see shared-process.ts.

const ENTRY = process.env.SVC_TEST_ENTRY
  ? pathToFileURL(process.env.SVC_TEST_ENTRY).href
  : new URL('../../cli/src/main.ts', import.meta.url).href

/** Which command what runs belongs to. */
const running = new AsyncLocalStorage<number>()
let now = 0

const exit = process.exit.bind(process)
// what a command of before has left for the end of its process is not for this one
process.exit = ((code?: number) => (running.getStore() === now ? exit(code) : undefined)) as typeof process.exit
for (const emitter of [process, process.stdout, process.stderr]) emitter.setMaxListeners(0)

const wrote = (stream: NodeJS.WriteStream, text: string) => new Promise<unknown>(resolve => stream.write(text, resolve))

interface Order {
  readonly number: number
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

async function run({ number, args, cwd, env }: Order): Promise<void> {
  now = number
  process.chdir(cwd)
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.argv = [process.execPath, 'svc', ...args]
  process.exitCode = undefined
  await running.run(number, () => import(`${ENTRY}?${number}`))
  now = 0
  const code = process.exitCode ?? 0
  await Promise.all([process.stdout, process.stderr].map(stream => wrote(stream, `\0end ${number}\0`)))
  process.send?.(code)
}

process.on('message', (order: Order) => void run(order))
process.on('disconnect', () => exit(0))
