import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import process from 'node:process'
import type { Readable } from 'node:stream'
import { type CallContext, systemContext, withTimeout } from '@svc/core'
import type { Isolation, IsolationRequest, PreparedProcess } from '@svc/core/contracts'
import { type Channel, openChannel } from '../processes/channel.ts'
import { handlingFor } from '../processes/handling.ts'
import { blockInheritedFiles } from '../processes/inherited-files.ts'
import { socketTransport } from '../processes/wire.ts'
import { MAX_PLUGIN_MESSAGE, PLUGIN_MESSAGE_BUDGET, PluginRunner } from './contract.ts'
import type { IsolateOptions } from './isolated-ref.ts'

/** What watches over one process. */
export interface ProcessOptions {
  /** Milliseconds its own closing may take before it is killed. */
  readonly closeLimitMs: number
  readonly onError?: (error: unknown, where: string) => void
  /** What it reads as its standard input; without it nothing. */
  readonly stdin?: Readable
  /** Reads what it prints; without it nobody does. */
  readonly onOutput?: (stream: Readable, name: 'stdout' | 'stderr') => void
}

/** One life of the process of an isolated plugin. */
export interface IsolatedProcess {
  readonly prepared: PreparedProcess
  readonly channel: Channel
  readonly pid: number | undefined
  /** How it ended, once it has and all that it had is gone. */
  readonly ended: Promise<string>
  /** The code with which it ended itself; undefined while it runs, and where a signal, a limit or this side ended it. */
  readonly exitCode: () => number | undefined
  /** Ends it at once; `why` is how it ended then. */
  readonly kill: (why: string) => void
  /** Lets the plugin close, then ends the process; kills it when that takes longer than the limit. */
  end(): Promise<void>
}

export async function startProcess(
  isolation: Isolation,
  request: IsolationRequest,
  ctx: CallContext,
  options: ProcessOptions
): Promise<IsolatedProcess> {
  const prepared = await isolation.prepare(request, ctx)
  // a group of its own: Ctrl-C on the terminal of the server is the server's, which lets what runs end
  const child = spawn(prepared.file, prepared.args, {
    env: prepared.env,
    stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe', ...blockInheritedFiles().slice(1)],
    detached: true,
  })
  // it may end without having read everything
  if (options.stdin) options.stdin.pipe(child.stdin!.on('error', () => {}))
  const { onError, onOutput = stream => stream.resume() } = options
  for (const name of ['stdout', 'stderr'] as const)
    onOutput(
      child[name]!.on('error', () => {}),
      name
    )
  const isHeld = prepared.hold !== 'nothing'
  const line = { ...(isHeld ? UNTRUSTED_TRANSPORT : {}), during: handlingFor(request) }
  const channel = openChannel(socketTransport(child.stdio[3] as Socket, line), {
    name: request.plugin,
    self: 'svc',
    ...(onError ? { onError } : {}),
    ...(isHeld ? { callLimits: UNTRUSTED_CALLS } : {}),
    onBreach: words => kill(words),
  })
  let why: string | undefined
  const kill = (words: string) => {
    if (child.exitCode !== null || child.signalCode !== null) return
    why ??= words
    child.kill('SIGKILL')
  }
  const exited = endOf(child)
  const ended = exited.then(async how => {
    const limits = await isolation.release(prepared.id, systemContext(AbortSignal.timeout(RELEASE_MS))).catch(() => [])
    return [why ?? how, ...limits].join('; ')
  })
  return {
    prepared,
    channel,
    pid: child.pid,
    ended,
    exitCode: () => (why !== undefined || child.exitCode === null || SIGNALLED.has(child.exitCode) ? undefined : child.exitCode),
    kill,
    async end() {
      await end(channel, exited, kill, options.closeLimitMs)
      await ended
    },
  }
}

/** A sandbox reports the signal that ended what it holds as 128 and its number: ILL, TRAP, ABRT, BUS, FPE, KILL, SEGV, XCPU, SYS. */
const SIGNALLED: ReadonlySet<number> = new Set([132, 133, 134, 135, 136, 137, 139, 152, 159])
const RELEASE_MS = 10_000
const MIB = 1024 * 1024
/** What code that is held may make this process hold; what waits to be read by it is the largest message of ours and as much again. */
export const UNTRUSTED_TRANSPORT = { most: MAX_PLUGIN_MESSAGE, budget: PLUGIN_MESSAGE_BUDGET, unread: 128 * MIB, isFair: true }
export const UNTRUSTED_CALLS = { calls: 10_000, bytes: 64 * MIB }

async function end(channel: Channel, exited: Promise<string>, kill: (why: string) => void, limitMs: number): Promise<void> {
  const timer = setTimeout(() => kill('it did not close in time'), limitMs)
  try {
    await withTimeout(limitMs, () => channel.reach('plugin_runner', PluginRunner).close(systemContext(channel.signal)))
  } catch {
    // What its closing may fail with is in its log; it ends all the same.
  }
  channel.close()
  await exited
  clearTimeout(timer)
}

async function endOf(child: ChildProcess): Promise<string> {
  try {
    const [code, signal] = await once(child, 'exit')
    return signal ?? `code ${code}`
  } catch (error) {
    return String(error)
  } finally {
    // Node ends this process for an error that nobody hears.
    child.on('error', () => {})
  }
}

const PASSED_ON = ['PATH', 'TZ', 'LANG', 'LC_ALL']

/** A plain process of Node that is held by nothing: for a program's own plugins, and for tests of them. */
export function unrestrictedIsolation({ env, respawn, hangMs = Number.POSITIVE_INFINITY }: IsolateOptions): Isolation {
  const passed = env ?? Object.fromEntries(PASSED_ON.map(key => [key, process.env[key]]))
  const restarts = respawn ? Number.POSITIVE_INFINITY : 0
  return {
    prepare: async ({ args }) => ({
      id: '',
      file: process.execPath,
      args,
      env: Object.fromEntries(Object.entries(passed).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
      hold: 'nothing',
      hangMs,
      restarts,
      windowMs: Number.POSITIVE_INFINITY,
    }),
    release: async () => [],
    refused: async () => {},
    look: async () => ({ cpuMs: 0, memoryBytes: 0, refusals: {} }),
    quarantine: async () => {},
    async *quarantined() {},
  }
}
