import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type AnyService, type AnySlot, systemUse } from '../src/token.ts'
import { type Channel, openChannel } from '../processes/channel.ts'
import { Shell } from './contract.ts'
import { socketTransport } from '../processes/wire.ts'

/** A plugin by what can be known before it runs. */
export interface IsolatedRef {
  readonly name: string
  /** The URL of its module. */
  readonly module: string
}

export interface IsolateOptions {
  /** All of its environment. Default: PATH and what says the time zone and language. */
  readonly env?: NodeJS.ProcessEnv
  /** Node's flags. Default: those of this process, but for the inspector's. */
  readonly execArgv?: readonly string[]
  /** The host's own tokens: what the plugin knows under their names must have their form. */
  readonly contracts?: readonly (AnyService | AnySlot)[]
  /** Milliseconds until it must have said what it declares. Default 30,000. */
  readonly startLimitMs?: number
  /** Milliseconds its own closing may take before it is killed. Default 2000. */
  readonly closeLimitMs?: number
  /** Brings it up again after its death, with growing pauses. */
  readonly respawn?: boolean
  /** Its process has ended and what it added is gone; `delayMs` until it comes back, if it does. */
  readonly onGone?: (how: string, delayMs: number | undefined) => void
  readonly onBack?: () => void
}

/** One life of the process of an isolated plugin. */
export interface IsolatedProcess {
  readonly channel: Channel
  /** How it ended, once it has. */
  readonly ended: Promise<string>
  /** Lets the plugin close, then ends the process; kills it when that takes longer than the limit. */
  end(): Promise<void>
}

// The build renames the entry with this file.
const ENTRY = fileURLToPath(new URL(`../isolation/isolate-child${extname(import.meta.url)}`, import.meta.url))
const PASSED_ON = ['PATH', 'TZ', 'LANG', 'LC_ALL']

export function startProcess(
  { name, module }: IsolatedRef,
  options: IsolateOptions,
  onFault?: (error: unknown, where: string) => void
): IsolatedProcess {
  const execArgv = options.execArgv ?? process.execArgv.filter(flag => !flag.startsWith('--inspect'))
  const env = options.env ?? Object.fromEntries(PASSED_ON.map(key => [key, process.env[key]]))
  // What it prints goes to this process's stderr: stdout may be a protocol.
  const child = spawn(process.execPath, [...execArgv, ENTRY, module, name], { env, stdio: ['ignore', 2, 2, 'pipe'] })
  const channel = openChannel(socketTransport(child.stdio[3] as Socket), { name, self: 'svc', ...(onFault ? { onFault } : {}) })
  const ended = endOf(child)
  return {
    channel,
    ended,
    async end() {
      const { closeLimitMs = 2000 } = options
      const timer = setTimeout(() => child.kill('SIGKILL'), closeLimitMs)
      // What its closing may fail with is in its log; it ends all the same.
      await channel
        .reach('shell', Shell)
        .close(systemUse(channel.signal))
        .catch(() => {})
      channel.close()
      await ended
      clearTimeout(timer)
    },
  }
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
