import { isWithinSize } from '@svc/core/internal'

/** Of a line of the log, and of the facts of one. */
export const LONGEST_LINE = 8192
const KEYS = 20
const LONGEST_TEXT = 200

/** What the log itself says of a line: who wrote it, when and how grave it is, no plugin says. */
const OURS = ['level', 'time', 'plugin', 'instance', 'msg', 'pid', 'hostname']

/** The facts of a line of a plugin's log: cut where they are long, and apart where they would take the place of what the log says itself. */
export function shortFacts(facts: unknown): object {
  if (typeof facts !== 'object' || facts === null) return {}
  const short = isWithinSize(facts, LONGEST_LINE) ? facts : cut(facts)
  return OURS.some(key => Object.hasOwn(short, key)) ? { said: short } : short
}

function cut(facts: object): object {
  const short: Record<string, unknown> = { cut: true }
  let keys = 0
  for (const key in facts) {
    if (++keys > KEYS) break
    const value: unknown = Reflect.get(facts, key)
    if (key.length > LONGEST_TEXT || typeof value === 'object') continue
    short[key] = typeof value === 'string' ? value.slice(0, LONGEST_TEXT) : value
  }
  return short
}
