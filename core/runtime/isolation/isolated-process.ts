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
import type { OpenHandle } from './open-handles.ts'

/** Options of one process. */
export interface ProcessOptions {
  /** Milliseconds that its cleanup can take before it is killed. */
  readonly closeLimitMs: number
  /** Called with the handles that a watched plugin leaves open. */
  readonly onLeft?: ((left: readonly OpenHandle[]) => void) | undefined
  readonly onError?: (error: unknown, where: string) => void
  /** Its standard input. Default: none. */
  readonly stdin?: Readable
  /** Reads its output. Default: the output is discarded. */
  readonly onOutput?: (stream: Readable, name: 'stdout' | 'stderr') => void
}

/** One process of an isolated plugin. */
export interface IsolatedProcess {
  readonly prepared: PreparedProcess
  readonly channel: Channel
  readonly pid: number | undefined
  /** Resolves to how it ended, after its resources are released. */
  readonly ended: Promise<string>
  /** The exit code of a process that ended itself. Undefined while it runs, and when a signal, a limit or this side ended it. */
  readonly exitCode: () => number | undefined
  /** Kills the process. `why` is then reported as how it ended. */
  readonly kill: (why: string) => void
  /** Lets the plugin clean up, then ends the process. Kills it at the limit. */
  end(): Promise<void>
}

export async function startProcess(
  isolation: Isolation,
  request: IsolationRequest,
  ctx: CallContext,
  options: ProcessOptions
): Promise<IsolatedProcess> {
  const prepared = await isolation.prepare(request, ctx)
  // Its own process group: Ctrl-C on the terminal goes to the server, which lets running work end.
  const child = spawn(prepared.file, prepared.args, {
    env: prepared.env,
    stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe', ...blockInheritedFiles().slice(1)],
    detached: true,
  })
  // The process can end before it has read everything.
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
      await end(channel, exited, kill, options)
      await ended
    },
  }
}

/**
 * A sandbox reports the signal that killed its process as 128 plus the number: ILL, TRAP, ABRT, BUS, FPE, KILL, SEGV, XCPU,
 * SYS.
 */
const SIGNALLED: ReadonlySet<number> = new Set([132, 133, 134, 135, 136, 137, 139, 152, 159])
const RELEASE_MS = 10_000
const MIB = 1024 * 1024
/**
 * Limits of the memory that a confined process can occupy here. The limit of unread data is the largest message and as much
 * again.
 */
export const UNTRUSTED_TRANSPORT = { most: MAX_PLUGIN_MESSAGE, budget: PLUGIN_MESSAGE_BUDGET, unread: 128 * MIB, isFair: true }
export const UNTRUSTED_CALLS = { calls: 10_000, bytes: 64 * MIB }

async function end(
  channel: Channel,
  exited: Promise<string>,
  kill: (why: string) => void,
  { closeLimitMs: limitMs, onLeft }: ProcessOptions
): Promise<void> {
  const timer = setTimeout(() => kill('it did not close in time'), limitMs)
  try {
    const left = await withTimeout(limitMs, () =>
      channel.reach('plugin_runner', PluginRunner).close(systemContext(channel.signal))
    )
    if (left.length > 0) onLeft?.(left)
  } catch {
    // The cause of a failing cleanup is in its log. The process ends anyway.
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
    // Node ends this process for an error without a listener.
    child.on('error', () => {})
  }
}

const PASSED_ON = ['PATH', 'TZ', 'LANG', 'LC_ALL']

/** The options of a process without confinement. */
export interface UnrestrictedOptions {
  /** The whole environment. Default: PATH, time zone and language. */
  readonly env?: NodeJS.ProcessEnv
  /** Restarts the process after its death, with growing delays. */
  readonly respawn?: boolean
  /** Milliseconds without a heartbeat after which it is killed. Default: never. */
  readonly hangMs?: number
}

/** A plain Node process without restrictions: for a program's own plugins and their tests. */
export function unrestrictedIsolation({ env, respawn, hangMs = Number.POSITIVE_INFINITY }: UnrestrictedOptions): Isolation {
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
