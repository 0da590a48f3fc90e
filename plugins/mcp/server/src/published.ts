import type { CallContext, Log, SlotView } from '@svc/core'
import type { McpClients, Prompt, Resource } from '@svc/core/contracts'
import { bridgedName } from '@svc/mcp-protocol'
import type { ToolCaller } from './call.ts'
import type { Catalogue, ToolSet } from './catalogue.ts'

/** Name and version of this server. */
export interface PublishedServer {
  readonly name: string
  readonly version: string
}

/** Everything that clients find at one path. */
export interface Published {
  readonly info: PublishedServer
  readonly catalogue: () => Catalogue
  readonly withheld: FindWithheld
  /** Returns the mode that forbids this tool; `undefined` for any other name. */
  readonly forbidden: (name: string) => string | undefined
  readonly calls: ToolCaller
  /** Absent if this path publishes no resources and prompts. */
  readonly resources?: SlotView<Resource> | undefined
  readonly prompts?: SlotView<Prompt> | undefined
  readonly changes: ChangePublisher
  readonly log: Log
}

/** Returns the server of a tool that has changed and waits for approval, `undefined` for any other name. */
type FindWithheld = (name: string, ctx: CallContext) => Promise<string | undefined>

/** Uses the known state of the servers and sends no request. */
export function createFindWithheld(clients: Pick<McpClients, 'list'> | undefined, { isPublished }: ToolSet): FindWithheld {
  return async (name, ctx) => {
    if (clients === undefined || !isPublished(name)) return undefined
    const servers = (await clients.list(ctx)).filter(({ state }) => state !== 'disabled')
    return servers.find(({ name: server, changed = [] }) => changed.some(tool => bridgedName(server, tool) === name))?.name
  }
}

/** A change that clients can subscribe to, in the SDK's form. */
type Change =
  | { readonly kind: 'tools_list_changed' | 'prompts_list_changed' | 'resources_list_changed' }
  | { readonly kind: 'resource_updated'; readonly uri: string }

/** Publishes changes to subscribers. */
export interface ChangePublisher {
  /** Returns a function that unsubscribes. With `wantsResources` the listener also gets changes of resource contents. */
  subscribe(listener: (change: Change) => void, wantsResources: boolean): () => void
  publish(change: Change): void
}

/** `publish` reports changes of the lists. Resources are watched while they have a subscriber. */
export function createChanges(resources: SlotView<Resource> | undefined, own: CallContext, log: Log): ChangePublisher {
  const listeners = new Set<(change: Change) => void>()
  const publish = (change: Change) => {
    for (const listener of listeners) listener(change)
  }
  const watch = createWatch(resources, uri => publish({ kind: 'resource_updated', uri }), own, log)
  let watching = 0
  return {
    publish(change) {
      publish(change)
      if (change.kind === 'resources_list_changed') watch.renew(watching > 0)
    },
    subscribe(listener, wantsResources) {
      listeners.add(listener)
      if (wantsResources && ++watching === 1) watch.renew(true)
      return () => {
        if (!listeners.delete(listener)) return
        if (wantsResources && --watching === 0) watch.renew(false)
      }
    },
  }
}

function createWatch(resources: SlotView<Resource> | undefined, onChange: (uri: string) => void, own: CallContext, log: Log) {
  const running = new Map<Resource, AbortController>()
  const follow = async (name: string, resource: Resource, ending: AbortController) => {
    const signal = AbortSignal.any([own.signal, ending.signal])
    try {
      for await (const uri of resource.changes!({ ...own, signal })) if (!signal.aborted) onChange(uri)
    } catch (error) {
      if (!signal.aborted)
        log.warn({ err: error, resource: name }, 'failed to watch a resource; clients get no further changes of it')
    }
  }
  return {
    /** Watches all resources that support it, or none. */
    renew(on: boolean) {
      const wanted =
        on && !own.signal.aborted ? (resources?.entries() ?? []).filter(([, entry]) => entry.changes !== undefined) : []
      const kept = new Set(wanted.map(([, entry]) => entry))
      for (const [resource, ending] of running) {
        if (kept.has(resource)) continue
        running.delete(resource)
        ending.abort()
      }
      for (const [name, resource] of wanted) {
        if (running.has(resource)) continue
        const ending = new AbortController()
        running.set(resource, ending)
        void follow(name, resource, ending)
      }
    },
  }
}
