import { serialize } from 'node:v8'
import type { Manifest } from '@svc/core'
import { matchesPattern } from '@svc/core/internal'
import type { PluginDescription } from './contract.ts'
import { addedTooMuch, usesNotPermitted } from './errors.ts'
import type { Isolated } from './isolated-ref.ts'

const MIB = 1024 * 1024
/** What one process may have added at a time: it stays in the memory of the host, and each tap of a hook may hold up whoever calls it. */
const MOST = 1000
const MOST_BYTES = 16 * MIB
const MOST_TAPS = 4
/** What may be named in all: figures are kept of each name, whether or not it is still there. */
const MOST_NAMES = 5000
/** Characters of one: what refuses it says it again. */
export const MAX_NAME_LENGTH = 300

/** One thing that a plugin adds. */
interface Contribution {
  readonly path: string
  /** Of the slot and the item, or of the hook. */
  readonly name: string
  readonly isTap?: boolean
  /** What the host keeps of it. */
  readonly data?: unknown
}

/** What one process of a plugin has added and tapped. */
export interface Contributions {
  /** `add` puts it in the place of what was added from the same path, and answers with its removal. Throws ADDED_TOO_MUCH. */
  put(wish: Contribution, add: () => () => void): void
  remove(path: string): void
  /** All of it goes when its process goes. */
  removeAll(): void
}

interface AddedItem {
  readonly name: string
  readonly bytes: number
  readonly remove: () => void
}

export function createContributions(plugin: string): Contributions {
  const held = new Map<string, AddedItem>()
  const names = new Set<string>()
  const bytesOf = (all: Iterable<AddedItem>) => [...all].reduce((sum, one) => sum + one.bytes, 0)
  const remove = (path: string) => {
    held.get(path)?.remove()
    held.delete(path)
  }
  return {
    put({ path, name, isTap = false, data }, add) {
      remove(path)
      if (name.length > MAX_NAME_LENGTH) throw addedTooMuch(plugin, `${MAX_NAME_LENGTH} characters of a name`)
      const bytes = serialize([path, name, data]).length
      const taps = () => [...held.values()].filter(one => one.name === name).length
      if (held.size >= MOST) throw addedTooMuch(plugin, `${MOST} things`)
      if (bytesOf(held.values()) + bytes > MOST_BYTES) throw addedTooMuch(plugin, `${MOST_BYTES / MIB} MiB`)
      if (isTap && taps() >= MOST_TAPS) throw addedTooMuch(plugin, `${MOST_TAPS} taps of one hook`)
      if (names.add(name).size > MOST_NAMES) throw addedTooMuch(plugin, `${MOST_NAMES} names in all`)
      held.set(path, { name, bytes, remove: add() })
    },
    remove,
    removeAll: () => [...held.keys()].forEach(remove),
  }
}

type Permissions = NonNullable<Manifest['permissions']>

/** Everybody may know of the host's life. */
const PUBLIC_SERVICE = 'host'

/** Whoever uses a service, what is in a slot, or is a service to others, has its data and its power: both are the person's to give. Throws NOT_PERMITTED. */
export function checkServicePermissions(
  plugin: string,
  tokens: PluginDescription['requires'],
  { services = [] }: Permissions
): void {
  const names = Object.values(tokens).map(token => token.name)
  const refused = [...new Set(names)].filter(name => name !== PUBLIC_SERVICE && !isListed(name, services))
  if (refused.length > 0) throw usesNotPermitted(plugin, refused.sort())
}

/** Whether everybody may join it. */
export const isPublicHook = (hook: string): boolean => hook.startsWith(`${PUBLIC_SERVICE}.`)

/** Who joins a hook sees, and may change, what goes through it. That of a slot which it may use tells no more than the slot does. */
export function canTap(hook: string, { ref: { confinement: held }, requires, optional }: Isolated): boolean {
  if (held === undefined) return true
  const uses = Object.values({ ...requires, ...optional }).map(token => `${token.name}.changed`)
  return isPublicHook(hook) || uses.includes(hook) || isListed(hook, held.permissions.hooks ?? [])
}

const isListed = (name: string, words: readonly string[]) => words.some(word => matchesPattern(word, name))
