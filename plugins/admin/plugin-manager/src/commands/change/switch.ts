import { changeLock, type Lock, readLock } from '../../set.ts'
import { abortOnInterrupt, endUnchanged, here, setHome } from '@svc/cli/program'
import { refused, servedBy, tell } from './change.ts'
import { openProgress } from './progress.ts'
import { tryChange } from './take-up.ts'
import { named } from './update.ts'

export interface SwitchAsked {
  readonly names: readonly string[]
  readonly enabled: boolean
  readonly json: boolean
  readonly config?: string | undefined
}

/** `svc plugins enable` and `disable`; resolves with the exit code. */
export async function switchPlugins({ names, enabled, ...asked }: SwitchAsked): Promise<number> {
  using interrupt = abortOnInterrupt()
  using progress = openProgress()
  const home = setHome()
  const before = await readLock(home)
  for (const name of names) named(before.plugins, name)
  const word = enabled ? 'enabled' : 'disabled'
  const facts = { [word]: names }
  if (names.every(name => named(before.plugins, name).enabled === enabled))
    return tell(asked, { text: `already ${word}: ${names.join(', ')}`, facts: { ...facts, servers: [] } })
  const taking = {
    config: asked.config,
    before,
    signal: interrupt.signal,
    tell: (step: 'reload' | 'start') => progress.tell({ step }),
  }
  const taken = await tryChange(here().home, taking, holds => changeLock(home, lock => switched(lock, names, enabled), holds))
  progress.clear()
  if (taken.problems.length === 0 && !interrupt.signal.aborted)
    return tell(asked, { text: `${word} ${names.join(', ')}; ${servedBy(taken)}`, facts: { ...facts, servers: taken.urls } })
  return interrupt.signal.aborted ? endUnchanged() : refused(asked, taken.problems)
}

const switched = (lock: Lock, names: readonly string[], enabled: boolean): Lock => ({
  ...lock,
  plugins: lock.plugins.map(one => (names.includes(one.name) ? { ...one, enabled } : one)),
})
