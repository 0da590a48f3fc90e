import type { Manifest } from '@svc/core'
import { matchesPattern } from '@svc/core/internal'
import { usesNotPermitted } from './errors.ts'
import type { Description } from './contract.ts'
import type { Isolated } from './isolated-ref.ts'

type Permissions = NonNullable<Manifest['permissions']>

/** Everybody may know of the host's life. */
const FREE = 'host'

/** Whoever uses a service, what is in a slot, or is a service to others, has its data and its power: both are the person's to give. Throws NOT_PERMITTED. */
export function holdToServices(plugin: string, tokens: Description['requires'], { services = [] }: Permissions): void {
  const names = Object.values(tokens).map(token => token.name)
  const refused = [...new Set(names)].filter(name => name !== FREE && !isNamed(name, services))
  if (refused.length > 0) throw usesNotPermitted(plugin, refused.sort())
}

/** Whether everybody may join it. */
export const isFree = (hook: string): boolean => hook.startsWith(`${FREE}.`)

/** Who joins a hook sees, and may change, what goes through it. That of a slot which it may use tells no more than the slot does. */
export function mayJoin(hook: string, { ref: { held }, requires, optional }: Isolated): boolean {
  if (held === undefined) return true
  const uses = Object.values({ ...requires, ...optional }).map(token => `${token.name}.changed`)
  return isFree(hook) || uses.includes(hook) || isNamed(hook, held.permissions.hooks ?? [])
}

const isNamed = (name: string, words: readonly string[]) => words.some(word => matchesPattern(word, name))
