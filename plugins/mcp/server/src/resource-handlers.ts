import type { ListResourcesResult, ListResourceTemplatesResult, ReadResourceResult } from '@modelcontextprotocol/server'
import { type CallContext, codeOf, type SlotView } from '@svc/core'
import type { Resource } from '@svc/core/contracts'
import { CALL_LIMITS } from './call.ts'
import type { Published } from './published.ts'
import { errorTextOf } from './result.ts'
import { handlerContextOf, type Sdk, type Server } from './sdk.ts'

/** Handles `resources/list`, `resources/templates/list` and `resources/read`. */
export function handleResources(
  server: Server,
  sdk: Sdk,
  resources: SlotView<Resource>,
  { log }: Published,
  own: CallContext | undefined
): void {
  const { ProtocolError, ProtocolErrorCode } = sdk
  const unknown = (uri: string) => new ProtocolError(ProtocolErrorCode.InvalidParams, 'Resource not found', { uri })
  server.setRequestHandler(
    'resources/list',
    (): ListResourcesResult => ({
      resources: listed(resources).flatMap(([name, { uri, ...resource }]) =>
        uri === undefined ? [] : [{ uri, name, ...factsOf(resource) }]
      ),
    })
  )
  server.setRequestHandler(
    'resources/templates/list',
    (): ListResourceTemplatesResult => ({
      resourceTemplates: listed(resources).flatMap(([name, { uriTemplate, ...resource }]) =>
        uriTemplate === undefined ? [] : [{ uriTemplate, name, ...factsOf(resource) }]
      ),
    })
  )
  server.setRequestHandler('resources/read', async ({ params: { uri } }, context): Promise<ReadResourceResult> => {
    const resource = resourceAt(sdk, resources, uri)
    if (!resource) throw unknown(uri)
    const ctx = { ...handlerContextOf(context, own).ctx, signal: context.mcpReq.signal }
    try {
      const contents = [...(await resource.read(uri, ctx))]
      if (JSON.stringify(contents).length <= CALL_LIMITS.resultBytes) return { contents }
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (codeOf(error) === 'RESOURCE_UNKNOWN') throw unknown(uri)
      log.debug({ err: error, uri, request_id: ctx.requestId }, 'failed to read a resource')
      throw new ProtocolError(ProtocolErrorCode.InternalError, errorTextOf(error, 'Reading the resource failed.'))
    }
    throw new ProtocolError(ProtocolErrorCode.InternalError, `the resource is larger than ${CALL_LIMITS.resultBytes} characters`)
  })
}

/** Whether a caller can follow the changes of a resource. Only a caller that can read a resource learns when it changes. */
export async function mayFollow(sdk: Sdk, { resources, log }: Published, uri: string, ctx: CallContext): Promise<boolean> {
  const resource = resources && resourceAt(sdk, resources, uri)
  if (!resource) return false
  try {
    await resource.read(uri, ctx)
    return true
  } catch (error) {
    ctx.signal.throwIfAborted()
    log.debug({ err: error, uri, request_id: ctx.requestId }, 'rejected a subscription: the caller cannot read the resource')
    return false
  }
}

const listed = (resources: SlotView<Resource>) => resources.entries().toSorted(([a], [b]) => (a < b ? -1 : 1))

const factsOf = ({ title, description, mimeType, size }: Omit<Resource, 'uri' | 'uriTemplate'>) => ({
  ...(title === undefined ? {} : { title }),
  ...(description === undefined ? {} : { description }),
  ...(mimeType === undefined ? {} : { mimeType }),
  ...(size === undefined ? {} : { size }),
})

/** Returns the resource with this URI, otherwise the first resource with a template that matches it. */
function resourceAt(sdk: Sdk, resources: SlotView<Resource>, uri: string): Resource | undefined {
  const all = listed(resources).map(([, resource]) => resource)
  return (
    all.find(resource => resource.uri === uri) ??
    all.find(resource => resource.uriTemplate !== undefined && matchesTemplate(sdk, resource.uriTemplate, uri))
  )
}

const matchesTemplate = (sdk: Sdk, template: string, uri: string) => new sdk.UriTemplate(template).match(uri) !== null
