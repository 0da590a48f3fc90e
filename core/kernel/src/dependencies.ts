import { type Manifest, matchesPattern } from '../loading/manifest.ts'
import { itemNotPermitted } from './errors.ts'
import type { Plugin } from './plugin.ts'
import type { OwnedScope } from './scope.ts'
import type { AnyService, AnySlot, SlotView } from './token.ts'

/** The dependencies that `setup` receives, and the calls to services that are still open. */
export interface InjectedDependencies {
  readonly values: Record<string, unknown>
  readonly waits: ReadonlySet<string>
  /** Ends the tracking of calls, when `setup` has returned. */
  settle(): void
}

/**
 * Resolves the dependencies of a plugin. While its setup runs, service calls are tracked, so that a time-out can report the
 * call that was open.
 */
export function injectDependencies(
  plugin: Plugin,
  services: ReadonlyMap<string, unknown>,
  view: (token: AnySlot) => SlotView<unknown>
): InjectedDependencies {
  const waits = new Set<string>()
  const settled: (() => void)[] = []
  const single = (token: AnyService | AnySlot) => {
    if (token.what === 'slot') return view(token)
    const stub = stubOf(token, services.get(token.name), waits)
    if (stub) settled.push(stub.settle)
    return stub?.service
  }
  const tokens = Object.entries({ ...plugin.requires, ...plugin.optional })
  return {
    values: Object.fromEntries(tokens.map(([key, token]) => [key, single(token)])),
    waits,
    settle: () => settled.forEach(settle => settle()),
  }
}

type Method = (...args: unknown[]) => unknown

/** Exposes the methods of the token and nothing else of the implementation. */
function stubOf(token: AnyService, implementation: unknown, waits: Set<string>) {
  if (implementation === undefined) return undefined
  const methods = implementation as Record<string, Method>
  const service: Record<string, Method> = {}
  for (const name of Object.keys(token.methods))
    service[name] = (...args) => trackCall(waits, `${token.name}.${name}`, methods[name]!(...args))
  const settle = () => {
    for (const name of Object.keys(token.methods)) service[name] = methods[name]!.bind(methods)
  }
  return { service, settle }
}

function trackCall(waits: Set<string>, what: string, answer: unknown): unknown {
  if (!(answer instanceof Promise)) return answer
  waits.add(what)
  const answered = () => void waits.delete(what)
  answer.then(answered, answered)
  return answer
}

/** Describes the work that a slow setup waits for. */
export function waitedFor(plugin: Plugin, { waits }: InjectedDependencies, owned: OwnedScope): string {
  if (waits.size > 0) return `the result of ${[...waits].join(', ')}`
  // The last step and the open resources would be those of the host process.
  if (plugin.processStatus) return 'its own work in its own process'
  const open = new Set(process.getActiveResourcesInfo().filter(kind => !kind.startsWith('TTY')))
  return `its own work (last step: ${owned.lastStep()}; open: ${[...open].join(', ') || 'nothing'})`
}

// --- a service for a plugin that can use only some of its items ---

/** The plugin that uses a service. */
interface ServiceUser {
  readonly plugin: string
  readonly permissions: NonNullable<Manifest['permissions']>
  /** The plugin that added an item to a slot. */
  readonly ownerOf: (slot: string, item: string) => string | undefined
}

/** A service of which a plugin uses only its own items, by the token of the provider. */
export function grantedService(
  token: AnyService,
  service: Readonly<Record<string, Method>>,
  user: ServiceUser
): Record<string, Method> {
  const { items } = token
  const methods = Object.entries(token.methods).map(([method, kind]): [string, Method] => {
    const isOfItem = items?.methods.includes(method) === true
    const isAllowed = isOfItem ? (item: unknown) => canUseItem(token, item, user) : () => canUseWhole(token, user)
    const call: Method = (...args) => {
      if (isAllowed(args[0])) return service[method]!(...args)
      const error = itemNotPermitted(user.plugin, token, isOfItem ? args[0] : undefined)
      return kind === 'call' ? Promise.reject(error) : failing(error)
    }
    return [method, call]
  })
  return Object.fromEntries(methods)
}

const canUseWhole = ({ name }: AnyService, { permissions }: ServiceUser) =>
  (permissions.services ?? []).some(word => matchesPattern(word, name))

function canUseItem(token: AnyService, item: unknown, user: ServiceUser): boolean {
  const { items } = token
  if (typeof item !== 'string' || items === undefined) return false
  if ('slot' in items) return canUseWhole(token, user) || user.ownerOf(items.slot, item) === user.plugin
  return (user.permissions[items.permission] ?? []).includes(item)
}

/** A stream that fails when it is read. */
const failing = (error: Error): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }),
})
