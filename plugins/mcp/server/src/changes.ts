import type { Log, SlotView, CallContext } from '@svc/core'
import type { Resource } from '@svc/core/contracts'

/** Something that clients may want to hear of, in the SDK's words. */
type Change =
  | { readonly kind: 'tools_list_changed' | 'prompts_list_changed' | 'resources_list_changed' }
  | { readonly kind: 'resource_updated'; readonly uri: string }

/** Tells of changes to those who listen. */
export interface Changes {
  /** `watching`: what lies in resources counts as well as the lists. Returns the end of it. */
  subscribe(listener: (change: Change) => void, watching: boolean): () => void
  publish(change: Change): void
}

/** Changes of the lists come by `publish`; resources are watched while somebody wants to know. */
export function createChanges(resources: SlotView<Resource> | undefined, own: CallContext, log: Log): Changes {
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

function createWatch(resources: SlotView<Resource> | undefined, tell: (uri: string) => void, own: CallContext, log: Log) {
  const running = new Map<Resource, AbortController>()
  const follow = async (name: string, resource: Resource, ending: AbortController) => {
    const signal = AbortSignal.any([own.signal, ending.signal])
    try {
      for await (const uri of resource.changes!({ ...own, signal })) if (!signal.aborted) tell(uri)
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, resource: name }, 'the changes of a resource can no longer be told')
    }
  }
  return {
    /** Watches all that can be watched now, or nothing. */
    renew(on: boolean) {
      const wanted = on && !own.signal.aborted ? (resources?.entries() ?? []).filter(([, one]) => one.changes !== undefined) : []
      const kept = new Set(wanted.map(([, one]) => one))
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
