import { lineInvalid } from './errors.ts'

/** What each scope allows, in the words of the API. */
export const SCOPES = ['chat', 'read', 'workflows', 'tools', 'admin'] as const
/** Everything but to change the server and to see what is others'. */
const USUAL = SCOPES.filter(scope => scope !== 'admin')

const CREATE = 'tokens create [--name <name>] [--scope <scope>]... [--ttl <30d>] [--json]'

const NAME = /^(?!tok_)[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/

/** A name as given. Throws COMMAND_LINE_INVALID. */
export function nameOf(given: string): string {
  if (NAME.test(given)) return given
  throw lineInvalid('a name is 1 to 64 of the characters A-Z a-z 0-9 . _ @ -, and is no id', CREATE)
}

/** Scopes as given, in the order of the table: `--scope chat --scope read` or `--scope chat,read`. Throws COMMAND_LINE_INVALID. */
export function scopesOf(given: readonly string[] | undefined): string[] {
  if (given === undefined) return USUAL
  const asked = new Set(given.flatMap(one => one.split(',')).map(one => one.trim()))
  const known: ReadonlySet<string> = new Set(SCOPES)
  const [strange] = asked.difference(known)
  if (strange !== undefined) throw lineInvalid(`there is no scope "${strange}"; there are ${SCOPES.join(', ')}`, CREATE)
  return SCOPES.filter(scope => asked.has(scope))
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const LONGEST_MS = 3650 * 86_400_000

/** Milliseconds of `30d`, `12h`, `90m`, `3600s`. Throws COMMAND_LINE_INVALID. */
export function ttlOf(given: string): number {
  const [, count = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(given) ?? []
  const ms = Number(count) * (UNITS[unit] ?? 0)
  if (ms >= 1_000 && ms <= LONGEST_MS) return ms
  throw lineInvalid('--ttl is a whole number with s, m, h or d, from 1s to 3650d: 30d, 12h, 90m', CREATE)
}
