import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { readConfigFlag } from '../../cli/src/argv.ts'
import { commandSources } from '../../cli/src/contributed.ts'
import { isOwn } from '../../cli/src/summaries.ts'
import { SVC } from './entry.ts'

/** A command of `svc`, as a process of its own would be started. */
export interface Command {
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** How it ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

/** Commands that read no input, wait for nobody and end by themselves: those of svc itself, and those of its plugins. A process knows one or the other. */
const GROUPS: readonly (readonly string[])[] = [
  ['config', 'doctor', 'plugins', 'status'],
  ['chat', 'mcp', 'providers', 'store', 'tokens', 'tools', 'workflows'],
]
const groupOf = ([first = '']: readonly string[]) => GROUPS.findIndex(group => group.includes(first))
/** What goes on until it is told to end, or is another program. */
const ENDLESS =
  /^(serve|login|dev|new|test|lint|pack|publish|build|install|update|uninstall|link|enable|disable|--watch|--follow|--stdio|-)$/

const seen = new Set<string>()

/**
 * Whether a command may run in the one process of all: its first run in a job has a process of its own, which shows that it starts there, and ends by itself.
 * SVC_TEST_OWN_PROCESSES in the environment: each has, to look for a fault.
 */
export function mayShare({ args, env }: Command): boolean {
  if (process.env.SVC_TEST_OWN_PROCESSES || groupOf(args) < 0 || args.some(word => ENDLESS.test(word))) return false
  // its message then comes from the input
  if (args.length === 1 && args[0] === 'chat') return false
  // Node reads it at its start
  const authorities = env.NODE_EXTRA_CA_CERTS
  if (authorities !== undefined && authorities !== process.env.NODE_EXTRA_CA_CERTS) return false
  const name = args
    .filter(word => /^[a-z]+$/.test(word))
    .slice(0, 2)
    .join(' ')
  const isNew = !seen.has(name)
  seen.add(name)
  return !isNew
}

const CHILD = fileURLToPath(new URL('./shared-process-child.ts', import.meta.url))

interface Lane {
  child?: ChildProcess | undefined
  /** What that child has read of plugins' commands, and keeps. */
  known?: string
  last: Promise<unknown>
}
const lanes: readonly Lane[] = GROUPS.map(() => ({ last: Promise.resolve() }))
let count = 0

/** Runs a command in a process that takes one after the other: what a process of its own would load anew is there. */
export function runShared(command: Command): Promise<Ended> {
  const lane = lanes[groupOf(command.args)]!
  const ended = lane.last.then(() => run(lane, command))
  lane.last = ended.catch(() => {})
  return ended
}

async function run(lane: Lane, command: Command): Promise<Ended> {
  const number = ++count
  const known = await commandsFor(command)
  if (lane.known !== known) end(lane)
  lane.known = known
  const process = (lane.child ??= start(lane))
  hold(process, 'ref')
  const texts = [process.stdout!, process.stderr!].map(stream => untilMark(stream, `\0end ${number}\0`))
  process.send({ number, ...command })
  const [[code, signal], out, err] = await Promise.all([outcome(process), ...texts] as const)
  if (process === lane.child) hold(process, 'unref')
  return { code, signal, out: out!, err: err! }
}

function start(lane: Lane): ChildProcess {
  const flags = SVC.slice(0, -1)
  const started = spawn(process.execPath, [...flags, CHILD], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  started.once('exit', () => {
    if (lane.child === started) lane.child = undefined
  })
  for (const stream of [started.stdout, started.stderr]) stream!.setEncoding('utf8')
  return started
}

/** The commands that its home adds, which a process of oclif reads once: one that knows those of another home does not serve. */
async function commandsFor({ args, cwd, env }: Command): Promise<string> {
  const { file, argv } = readConfigFlag(args)
  if (isOwn(argv)) return ''
  return JSON.stringify([file, await commandSources(file, { home: env.SVC_HOME!, cwd, env })])
}

function end(lane: Lane): void {
  lane.child?.kill()
  lane.child = undefined
}

/** A process that waits for the next command keeps nothing running; it ends when this one does. */
function hold(process: ChildProcess, how: 'ref' | 'unref'): void {
  process[how]()
  process.channel?.[how]()
  for (const stream of [process.stdout, process.stderr]) (stream as unknown as Record<typeof how, () => void>)[how]()
}

/** A command that exits takes the process with it. */
async function outcome(process: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
  const done = new AbortController()
  const { signal } = done
  try {
    return await Promise.race([
      once(process, 'message', { signal }).then(([code]): [number, null] => [code as number, null]),
      once(process, 'exit', { signal }) as Promise<[number | null, NodeJS.Signals | null]>,
    ])
  } finally {
    done.abort()
  }
}

function untilMark(stream: NodeJS.ReadableStream, mark: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  const end = () => resolve(text)
  const read = (chunk: string) => {
    text += chunk
    if (text.endsWith(mark)) resolve(text.slice(0, -mark.length))
  }
  stream.on('data', read).once('end', end)
  return promise.finally(() => stream.off('data', read).off('end', end))
}
