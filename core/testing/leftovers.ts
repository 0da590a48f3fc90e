import { setTimeout as sleep } from 'node:timers/promises'
import { type SvcError, svcError } from '@svc/core'

const SETTLE_MS = 1000
/** What ends by itself, or belongs to the terminal. */
const PASSING = /^(TTY|Immediate|FSReq|CloseReq|TickObject)/

const watched = { hosts: 0, plugins: new Set<string>(), before: new Map<string, number>() }

/** Begins to watch what is opened, if no other test host does already: hosts that run side by side cannot be told apart. */
export function beginWatch(): void {
  if (watched.hosts++ > 0) return
  watched.before = resources()
  watched.plugins.clear()
}

/** Ends the watch of one host. After the last one, throws LEFTOVERS when more is open than before the first. */
export async function endWatch(plugins: readonly string[], mayLeaveOpen: readonly string[]): Promise<void> {
  for (const plugin of plugins) watched.plugins.add(plugin)
  if (--watched.hosts > 0) return
  const end = performance.now() + SETTLE_MS
  const left = () => leftovers().filter(kind => !mayLeaveOpen.includes(kind))
  while (left().length > 0 && watched.hosts === 0 && performance.now() < end) await sleep(10)
  if (watched.hosts === 0 && left().length > 0) throw leftOpen([...watched.plugins], left())
}

function leftovers(): string[] {
  return [...resources()].filter(([kind, count]) => count > (watched.before.get(kind) ?? 0)).map(([kind]) => kind)
}

function resources(): Map<string, number> {
  const kinds = process.getActiveResourcesInfo().filter(kind => !PASSING.test(kind))
  return new Map([...Map.groupBy(kinds, kind => kind)].map(([kind, all]) => [kind, all.length]))
}

const leftOpen = (plugins: readonly string[], open: readonly string[]): SvcError =>
  svcError('LEFTOVERS', `${plugins.join(', ')} left open: ${open.join(', ')}`, {
    plugin: plugins.join(', '),
    details: { plugins, open },
    mend:
      'give what setup opens to its scope: scope.use(server), scope.defer(() => clearInterval(timer)), or end it when scope.signal aborts; ' +
      'what the test itself opens, open before testHost, or name in mayLeaveOpen',
  })
