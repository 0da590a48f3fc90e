import { serialize } from 'node:v8'
import { type Manifest, matchesPattern } from '@svc/core'
import { grantedItems } from '@svc/core/internal'
import type { PluginDescription } from './contract.ts'
import { addedTooMuch, usesNotPermitted } from './errors.ts'
import type { Isolated } from './isolated-ref.ts'

const MIB = 1024 * 1024
/** Limits of what one process can add: the host keeps it in memory, and each tap of a hook can delay its callers. */
const MOST = 1000
const MOST_BYTES = 16 * MIB
const MOST_TAPS = 4
/** Maximum number of different names. Statistics are kept for each name, even after its removal. */
const MOST_NAMES = 5000
/** Maximum length of a name. Error messages repeat it. */
export const MAX_NAME_LENGTH = 300

/** An item or a tap that a plugin adds. */
interface Contribution {
  readonly path: string
  /** Slot and item name, or the hook id. */
  readonly name: string
  readonly isTap?: boolean
  /** Data that the host keeps of it. */
  readonly data?: unknown
}

/** The contributions of one process of a plugin. */
export interface Contributions {
  /** Adds a contribution, in place of an earlier one from the same path. `add` returns the removal. Throws ADDED_TOO_MUCH. */
  put(contribution: Contribution, add: () => () => void): void
  remove(path: string): void
  /** Whether it contains an item or a tap of this name. */
  has(name: string): boolean
  /** Removes everything when the process ends. */
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
  const bytesOf = (all: Iterable<AddedItem>) => [...all].reduce((sum, addedItem) => sum + addedItem.bytes, 0)
  const remove = (path: string) => {
    held.get(path)?.remove()
    held.delete(path)
  }
  return {
    put({ path, name, isTap = false, data }, add) {
      remove(path)
      if (name.length > MAX_NAME_LENGTH) throw addedTooMuch(plugin, `${MAX_NAME_LENGTH} characters in a name`)
      const bytes = serialize([path, name, data]).length
      const taps = () => [...held.values()].filter(addedItem => addedItem.name === name).length
      if (held.size >= MOST) throw addedTooMuch(plugin, `${MOST} contributions`)
      if (bytesOf(held.values()) + bytes > MOST_BYTES) throw addedTooMuch(plugin, `${MOST_BYTES / MIB} MiB of contributions`)
      if (isTap && taps() >= MOST_TAPS) throw addedTooMuch(plugin, `${MOST_TAPS} taps on one hook`)
      if (names.add(name).size > MOST_NAMES) throw addedTooMuch(plugin, `${MOST_NAMES} different names`)
      held.set(path, { name, bytes, remove: add() })
    },
    remove,
    has: name => held.values().some(addedItem => addedItem.name === name),
    removeAll: () => [...held.keys()].forEach(remove),
  }
}

type Permissions = NonNullable<Manifest['permissions']>

/** The beginning of the keys of services that a plugin provides, among those that it uses. */
export const PROVIDED = '~provides'

/** The hooks of the host are public. */
const PUBLIC_SERVICE = 'host'
/** Services of which a plugin reaches only what it has added itself. */
const OWN_ITEMS: readonly string[] = ['cache', 'settings']

/**
 * Using a service or a slot, or providing a service, gives access to data and power that a person must grant. Throws
 * NOT_PERMITTED.
 */
export function checkServicePermissions(plugin: string, tokens: PluginDescription['requires'], permissions: Permissions): void {
  const { services = [] } = permissions
  const names = Object.entries(tokens)
    .filter(([key, token]) => key.startsWith(PROVIDED) || !isLimited(token, permissions))
    .map(([, token]) => token.name)
  const refused = [...new Set(names)].filter(name => name !== PUBLIC_SERVICE && !isListed(name, services))
  if (refused.length > 0) throw usesNotPermitted(plugin, refused.sort())
}

/** Whether the host offers only single items of a slot or service: those that the permissions name, or the plugin's own. */
const isLimited = ({ what, name }: PluginDescription['requires'][string], permissions: Permissions) =>
  (what === 'service' && OWN_ITEMS.includes(name)) || (grantedItems(permissions, what, name) ?? []).length > 0

/** Whether all plugins can tap this hook. Spans tell who did what, and their content holds messages: they need a permission. */
export const isPublicHook = (hook: string): boolean => hook.startsWith(`${PUBLIC_SERVICE}.`) && !hook.startsWith(SPAN_HOOKS)
const SPAN_HOOKS = `${PUBLIC_SERVICE}.span`

/** A tap sees a value and can change it. The `changed` hook of a slot that the plugin uses reveals no more than the slot. */
export function canTap(hook: string, { ref: { confinement: held }, requires, optional }: Isolated): boolean {
  if (held === undefined) return true
  const uses = Object.values({ ...requires, ...optional }).map(token => `${token.name}.changed`)
  return isPublicHook(hook) || uses.includes(hook) || isListed(hook, held.permissions.hooks ?? [])
}

const isListed = (name: string, words: readonly string[]) => words.some(word => matchesPattern(word, name))
