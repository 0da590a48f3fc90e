import type { CallContext } from '@svc/core'
import type { Published } from './published.ts'
import { mayFollow } from './resource-handlers.ts'
import { exchangeOf, type Sdk, type Server } from './sdk.ts'

/** Addresses that one client may want to hear of. */
const MOST = 1_000

/** Sends changes to the client of a server that has one for itself, and takes its wishes for resources. `own` is whose requests they are, where the transport carries none. Returns the end of it. */
export function follow(server: Server, sdk: Sdk, published: Published, own?: CallContext): () => void {
  const { changes } = published
  const wanted = new Set<string>()
  const send = createSending(server)
  let stopWatching: (() => void) | undefined
  const stopListening = changes.subscribe(change => {
    if (change.kind !== 'resource_updated') send(change.kind)
  }, false)
  const listen = () =>
    changes.subscribe(change => {
      if (change.kind === 'resource_updated' && wanted.has(change.uri))
        void server.sendResourceUpdated({ uri: change.uri }).catch(ignore)
    }, true)
  const ignore = (error: Error) => server.onerror?.(error)
  if (server.getCapabilities().resources) {
    server.setRequestHandler('resources/subscribe', async ({ params }, context) => {
      const ctx = { ...exchangeOf(context, own).ctx, signal: context.mcpReq.signal }
      if (!(await mayFollow(sdk, published, params.uri, ctx)))
        throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, 'Resource not found', { uri: params.uri })
      if (wanted.size >= MOST && !wanted.has(params.uri)) throw new RangeError(`no more than ${MOST} resources can be followed`)
      wanted.add(params.uri)
      stopWatching ??= listen()
      return {}
    })
    server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      wanted.delete(params.uri)
      return {}
    })
  }
  return () => {
    stopListening()
    stopWatching?.()
  }
}

function createSending(server: Server) {
  const sends = {
    tools_list_changed: () => server.sendToolListChanged(),
    prompts_list_changed: () => server.sendPromptListChanged(),
    resources_list_changed: () => server.sendResourceListChanged(),
  }
  return (kind: keyof typeof sends) => void sends[kind]().catch(error => server.onerror?.(error as Error))
}
