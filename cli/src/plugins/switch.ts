import { changeLock, type Lock, readLock, rollback } from '@svc/plugin-set'
import { abortOnInterrupt, INTERRUPTED } from '../interrupt.ts'
import { here, setHome } from '../settings.ts'
import { refused, servedBy, tell } from './change.ts'
import { openProgress } from './progress.ts'
import { takeBack, takeUp } from './take-up.ts'
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
  await changeLock(home, lock => switched(lock, names, enabled))
  const taken = await takeUp(here().home, {
    config: asked.config,
    before,
    signal: interrupt.signal,
    tell: step => progress.tell({ step }),
  })
  progress.clear()
  if (taken.problems.length === 0 && !interrupt.signal.aborted)
    return tell(asked, { text: `${word} ${names.join(', ')}; ${servedBy(taken)}`, facts: { ...facts, servers: taken.urls } })
  await rollback(home, before)
  if (taken.urls.length > 0) await takeBack(here().home)
  if (!interrupt.signal.aborted) return refused(asked, taken.problems)
  process.stderr.write('interrupted: nothing was changed\n')
  return INTERRUPTED
}

const switched = (lock: Lock, names: readonly string[], enabled: boolean): Lock => ({
  ...lock,
  plugins: lock.plugins.map(one => (names.includes(one.name) ? { ...one, enabled } : one)),
})
