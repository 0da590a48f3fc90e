import { isDeepStrictEqual } from 'node:util'
import {
  closeFailed,
  contributionDiffers,
  permissionMissing,
  scopeClosed,
  type SvcError,
  undeclaredContribution,
} from './errors.ts'
import { type CallCounter, grantedChange, type Slot } from './slot.ts'
import type { Hooks } from './hooks.ts'
import type { Log } from './log.ts'
import { declares, detailsOf, grantedItems, type Manifest, matchesPattern } from '../loading/manifest.ts'
import type { Scope, TapOptions } from './plugin.ts'
import type { Tracer } from './spans.ts'
import type { AnyHook, AnyService, AnySlot, CallContext, SlotChange } from './token.ts'
import { withTimeout } from './scheduling.ts'

/** Defines how values pass between plugins: directly, or (strict) through a channel that clones and checks them. */
export interface PluginBoundary {
  /** Runs the setup of a plugin. */
  setup<T>(by: string, work: () => T): T
  service(token: AnyService, implementation: unknown, by: string): unknown
  item(token: AnySlot, item: unknown, by: string, name: string): unknown
  tap(ref: AnyHook, tap: (value: unknown, ctx: CallContext) => unknown, by: string): (value: unknown, ctx: CallContext) => unknown
}

/** Options of a scope. */
export interface ScopeOptions {
  readonly name: string
  readonly instance?: string
  /** For an instance: the position of its entry in the configuration. */
  readonly place?: number
  readonly config: unknown
  readonly manifest: Manifest
  /** The accepted permissions of the manifest. */
  readonly permissions: NonNullable<Manifest['permissions']>
  readonly declared: boolean
  readonly order: number
  readonly provides?: AnyService
  readonly log: Log
  readonly hooks: Hooks
  readonly boundary: PluginBoundary
  readonly closeLimitMs: () => number
  slot(token: AnySlot): Slot
  /** Counts and traces the calls of added items. */
  readonly counts: CallCounter
  readonly tracer: Tracer
}

/** A scope with the parts that only the host uses. */
export interface OwnedScope {
  readonly scope: Scope
  /** The added names, by slot. */
  readonly added: Map<string, Set<string>>
  /** Describes the last operation of the plugin on its scope. */
  lastStep(): string
  /** Undoes everything in reverse order and returns the failures. */
  close(): Promise<SvcError[]>
}

type Undo = () => unknown
type Tap = (value: unknown, ctx: CallContext) => unknown

/** Creates the scope of one plugin: an ordered set of undo functions. */
export function createScope(parts: ScopeOptions): OwnedScope {
  const { name } = parts
  const undos = new Set<Undo>()
  const added = new Map<string, Set<string>>()
  const ending = new AbortController()
  let step = 'nothing added yet'
  const open = (what: string) => {
    if (ending.signal.aborted) throw scopeClosed(name, what)
    step = what
  }
  const owned = (undo: Undo): (() => void) => {
    undos.add(undo)
    return () => void (undos.delete(undo) && undo())
  }
  const scope: Scope = {
    name,
    instance: parts.instance,
    config: parts.config,
    log: parts.log,
    signal: ending.signal,
    hooks: callersOf(parts),
    add(slot, item, value) {
      open(`added ${slot.name}/${item}`)
      if (parts.declared) checkManifest(parts, slot, item, value)
      const crossed = parts.boundary.item(slot, value, name, item)
      const remove = parts.slot(slot).add(item, parts.counts.item(slot, crossed, { name: item, plugin: name }), name, parts.place)
      const names = note(added, slot.name, item)
      return owned(() => {
        names.delete(item)
        remove()
      })
    },
    tap(ref, run, options?: TapOptions) {
      open(`tapped ${ref.id}`)
      const crossed = grantedTap(parts, ref, parts.boundary.tap(ref, run as Tap, name))
      return owned(parts.hooks.tap(ref, name, parts.order, crossed, options))
    },
    span: parts.tracer.starter(name),
    use(thing) {
      open('took ownership of a disposable')
      owned(() => (Symbol.asyncDispose in thing ? thing[Symbol.asyncDispose]() : thing[Symbol.dispose]()))
      return thing
    },
    defer(undo) {
      open('deferred an undo function')
      owned(undo)
    },
  }
  return { scope, added, lastStep: () => step, close: () => closeAll(parts, ending, undos) }
}

const CHANGED = '.changed'

/** A plugin with single items of a slot sees no other items in its changes. */
function grantedTap({ permissions }: ScopeOptions, { id }: AnyHook, tap: Tap): Tap {
  const granted = id.endsWith(CHANGED) ? grantedItems(permissions, 'slot', id.slice(0, -CHANGED.length)) : undefined
  return granted ? (value, ctx) => tap(grantedChange(value as SlotChange, granted), ctx) : tap
}

/** Compares an added item with the manifest. Throws CONTRIBUTION_UNDECLARED, CONTRIBUTION_DIFFERS, PERMISSION_MISSING. */
function checkManifest(
  { name, manifest, permissions, ...parts }: ScopeOptions,
  token: AnySlot,
  item: string,
  value: unknown
): void {
  // An older copy of the token can lack these members.
  const { name: slot, declared, permission } = { ...parts.slot(token).token, ...token }
  const data = Object(value) as Readonly<Record<string, unknown>>
  const added = declared && picked(data, declared)
  if (!declares(manifest, slot, item)) throw undeclaredContribution(name, slot, item, added)
  if (declared && added) {
    const said = picked(detailsOf(manifest, slot, item), declared)
    if (declared.some(key => !isDeepStrictEqual(said[key], added[key]))) throw contributionDiffers(name, slot, item, said, added)
  }
  if (permission === undefined) return
  const names = permissions[permission.name as keyof typeof permissions] ?? []
  for (const wanted of wantedBy(permission, item, data))
    if (!names.some(word => matchesPattern(word, wanted))) throw permissionMissing(name, slot, item, wanted, permission)
}

/** The values that the permission has to list. */
function wantedBy(
  permission: NonNullable<AnySlot['permission']>,
  item: string,
  data: Readonly<Record<string, unknown>>
): readonly string[] {
  if ('without' in permission) return data[permission.without] === undefined ? [item] : []
  const list = data[permission.listing]
  return Array.isArray(list) ? permission.values.filter(value => list.includes(value)) : []
}

/** Picks the given members, as far as they exist. */
const picked = (data: Readonly<Record<string, unknown>>, keys: readonly string[]): Readonly<Record<string, unknown>> =>
  Object.fromEntries(keys.flatMap(key => (data[key] === undefined ? [] : [[key, data[key]]])))

function note(added: Map<string, Set<string>>, slot: string, name: string): Set<string> {
  const names = added.get(slot) ?? new Set<string>()
  added.set(slot, names.add(name))
  return names
}

function callersOf(parts: ScopeOptions): Scope['hooks'] {
  const hooks = Object.entries((parts.provides?.hooks ?? {}) as Record<string, AnyHook>)
  return Object.fromEntries(hooks.map(([hook, ref]) => [hook, parts.hooks.caller(ref, parts.name)])) as Scope['hooks']
}

async function closeAll(parts: ScopeOptions, ending: AbortController, undos: Set<Undo>): Promise<SvcError[]> {
  ending.abort(scopeClosed(parts.name, 'closing'))
  const failed: SvcError[] = []
  const limit = parts.closeLimitMs()
  for (const undo of [...undos].reverse()) {
    undos.delete(undo)
    try {
      await withTimeout(limit, () => undo())
    } catch (error) {
      failed.push(closeFailed(parts.name, 'an undo function failed', error))
    }
  }
  return failed
}
