import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { systemContext, type CallContext, withTimeout } from '@svc/core'
import type { Isolation, IsolationRequest, PreparedProcess } from '@svc/core/contracts'
import { type Channel, openChannel } from '../processes/channel.ts'
import { BUDGET_OF_A_PLUGIN, MOST_OF_A_PLUGIN, Shell } from './contract.ts'
import { handlingFor } from '../processes/handling.ts'
import { coverInherited } from '../processes/inherited.ts'
import { socketTransport } from '../processes/wire.ts'

/** What watches over one process. */
export interface ProcessOptions {
  /** Milliseconds its own closing may take before it is killed. */
  readonly closeLimitMs: number
  readonly onFault?: (error: unknown, where: string) => void
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
    stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe', ...coverInherited().slice(1)],
    detached: true,
  })
  // it may end without having read everything
  if (options.stdin) options.stdin.pipe(child.stdin!.on('error', () => {}))
  const { onFault, onOutput = stream => stream.resume() } = options
  for (const name of ['stdout', 'stderr'] as const)
    onOutput(
      child[name]!.on('error', () => {}),
      name
    )
  const isHeld = prepared.hold !== 'nothing'
  const line = { ...(isHeld ? STRANGERS_LINE : {}), during: handlingFor(request) }
  const channel = openChannel(socketTransport(child.stdio[3] as Socket, line), {
    name: request.plugin,
    self: 'svc',
    ...(onFault ? { onFault } : {}),
    ...(isHeld ? { held: STRANGERS_CALLS } : {}),
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
export const STRANGERS_LINE = { most: MOST_OF_A_PLUGIN, budget: BUDGET_OF_A_PLUGIN, unread: 128 * MIB, isFair: true }
export const STRANGERS_CALLS = { calls: 10_000, bytes: 64 * MIB }

async function end(channel: Channel, exited: Promise<string>, kill: (why: string) => void, limitMs: number): Promise<void> {
  const timer = setTimeout(() => kill('it did not close in time'), limitMs)
  try {
    await withTimeout(limitMs, () => channel.reach('shell', Shell).close(systemContext(channel.signal)))
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
