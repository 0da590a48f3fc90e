import type { Plugin } from './plugin.ts'
import type { OwnedScope } from './scope.ts'
import type { AnyService, AnySlot, SlotView } from './token.ts'

/** What `setup` is given, and the calls to services that have not been answered yet. */
export interface InjectedDependencies {
  readonly values: Record<string, unknown>
  readonly waits: ReadonlySet<string>
  /** The setup has ended: calls go straight through from now on. */
  settle(): void
}

/** Hands out what the plugin asked for. While its setup runs, calls are noted, so that a time-out can say what was waited for. */
export function injectDependencies(
  plugin: Plugin,
  services: ReadonlyMap<string, unknown>,
  view: (token: AnySlot) => SlotView<unknown>
): InjectedDependencies {
  const waits = new Set<string>()
  const settled: (() => void)[] = []
  const one = (token: AnyService | AnySlot) => {
    if (token.what === 'slot') return view(token)
    const stub = stubOf(token, services.get(token.name), waits)
    if (stub) settled.push(stub.settle)
    return stub?.service
  }
  const tokens = Object.entries({ ...plugin.requires, ...plugin.optional })
  return {
    values: Object.fromEntries(tokens.map(([key, token]) => [key, one(token)])),
    waits,
    settle: () => settled.forEach(settle => settle()),
  }
}

type Method = (...args: unknown[]) => unknown

/** A service as others get it: the methods of its token and nothing else. */
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

/** What a setup that takes too long waits for, in words. */
export function waitedFor(plugin: Plugin, { waits }: InjectedDependencies, owned: OwnedScope): string {
  if (waits.size > 0) return `the answer of ${[...waits].join(', ')}`
  // the steps and what is open here are those of the host
  if (plugin.processStatus) return 'something of its own, in a process of its own'
  const open = new Set(process.getActiveResourcesInfo().filter(kind => !kind.startsWith('TTY')))
  return `something of its own (last step: ${owned.lastStep()}; open: ${[...open].join(', ') || 'nothing'})`
}
