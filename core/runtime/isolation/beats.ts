import { systemUse } from '@svc/core'
import { Shell } from './contract.ts'
import type { IsolatedProcess } from './isolated-process.ts'

/** Looks without an answer after which it hangs: one alone may be this process's own fault. */
const LOOKS = 4
const LONGEST_MS = 2500
/** Milliseconds that a process may take until it answers at all. */
const FIRST_MS = 20_000

export interface Beats {
  /** Resolves once the process has answered at all. */
  readonly alive: Promise<void>
  end(): void
}

/** Asks a process again and again whether its loop goes on, and kills it when it has not for so long; `look` is for figures. */
export function watchBeats({ channel, prepared, kill }: IsolatedProcess, look: () => Promise<void>): Beats {
  const { hangMs } = prepared
  const shell = channel.reach('shell', Shell)
  const everyMs = Math.min(LONGEST_MS, hangMs / LOOKS)
  let limitMs = Math.max(FIRST_MS, hangMs)
  let missed = 1
  const ask = async () => {
    await shell.beat(systemUse(channel.signal))
    missed = 0
    limitMs = hangMs
  }
  const onTick = () => {
    if (missed++ * everyMs >= limitMs) return kill(`it hangs: no answer for ${limitMs} ms`)
    // What fails here is a process that ends, which is told elsewhere.
    look().catch(() => {})
    if (missed === 1) ask().catch(() => {})
  }
  const alive = ask()
  const timer = setInterval(onTick, everyMs).unref()
  return { alive, end: () => clearInterval(timer) }
}
