import { type Fields, isFields } from '@svc/api-types'
import type { CallContext } from '@svc/core'
import type { Json, NamedCall, NamedModel, NamedModels, NativeRequest, RequestField, RouteRequest } from '@svc/core/contracts'
import { isOpaque, opaqueOf, readOpaque } from './opaque.ts'
import { lackedNames, type Purpose, type Translated, translate } from './request.ts'

/** The name of this API as a protocol of model servers. */
const PROTOCOL = 'anthropic'
/** The headers of this API that go to a server that speaks it. */
const HEADERS = ['anthropic-beta', 'anthropic-version']

/** A request that is ready to be called. */
export interface PreparedCall {
  readonly translated: Translated
  readonly call: NamedCall
  /** Whether the server of the model speaks this API. Known only if it makes a difference. */
  readonly isNative: boolean
  /** The header that lists what the model of the answer does not get. */
  droppedHeader(dropped: readonly RequestField[], isNative: boolean): Readonly<Record<string, string>>
}

/** Reads a request. Throws the errors of `translate`, and MODEL_NOT_FOUND. */
export async function prepare(
  models: NamedModels,
  { body: json, headers }: RouteRequest,
  purpose: Purpose,
  ctx: CallContext
): Promise<PreparedCall> {
  const body = json as Fields
  const translated = translate(body, purpose)
  const { name, request, defaults, losses } = translated
  if (headers['anthropic-beta']) losses.drop('anthropic-beta')
  const hasSigned = hasOpaque(body)
  const isDecided = hasSigned || losses.refusal !== undefined || losses.dropped.size > 0
  const model = isDecided ? await models.find(name, ctx) : undefined
  const isNative = model?.features?.protocol === PROTOCOL
  if (!isNative && losses.refusal && purpose === 'answer') throw losses.refusal
  const native: NativeRequest = {
    protocol: PROTOCOL,
    body: hasSigned ? withOwnSignatures(body, model) : body,
    headers: Object.fromEntries(HEADERS.flatMap(header => (headers[header] ? [[header, headers[header]]] : []))),
  }
  return {
    translated,
    call: { name, request: { ...request, native }, defaults, ...keyOf(headers) },
    isNative,
    droppedHeader: (dropped, isPassedOn) =>
      headerOf([...(isPassedOn ? [] : losses.dropped), ...lackedNames(translated, body, dropped)]),
  }
}

/** The key with which a client repeats a request: a team or workflow runs only once. */
const keyOf = ({ 'idempotency-key': idempotencyKey }: RouteRequest['headers']) =>
  idempotencyKey === undefined ? {} : { idempotencyKey }

const LONGEST_HEADER = 1_000
const UNSAFE = /[^\x21-\x2b\x2d-\x7e]/g

/** The header `x-svc-dropped`. Names of fields come from the client. */
function headerOf(names: readonly string[]): Readonly<Record<string, string>> {
  if (names.length === 0) return {}
  const all = [...new Set(names)].map(name => name.slice(0, 100).replace(UNSAFE, '?'))
  let value = ''
  for (const [at, name] of all.entries()) {
    const next = at === 0 ? name : `${value}, ${name}`
    if (next.length > LONGEST_HEADER - 20) return { 'x-svc-dropped': `${value}, +${all.length - at}` }
    value = next
  }
  return { 'x-svc-dropped': value }
}

const isSigned = (block: Json): boolean => isFields(block) && isOpaque(opaqueOf(block))

const contentOf = (message: Json | undefined): readonly Json[] =>
  isFields(message) && message.role === 'assistant' && Array.isArray(message.content) ? message.content : []

/** Whether the messages have reasoning that svc has signed. */
const hasOpaque = ({ messages }: Fields): boolean =>
  Array.isArray(messages) && messages.some(message => contentOf(message).some(isSigned))

/**
 * The body for a server that speaks this API: signatures of svc are those of other models, which the server would refuse. A
 * signature that svc has put around one of this provider is taken off.
 */
function withOwnSignatures(body: Fields, model: NamedModel | undefined): Fields {
  const messages = (body.messages as readonly Json[]).map((message): Json => {
    const content = contentOf(message)
    if (!content.some(isSigned)) return message
    const own = content.flatMap((block): readonly Json[] => (isFields(block) ? ownBlock(block, model?.owner) : [block]))
    return { ...(message as Fields), content: own }
  })
  return { ...body, messages: messages.filter(message => !isFields(message) || !isEmpty(message)) }
}

const isEmpty = ({ content }: Fields) => Array.isArray(content) && content.length === 0

function ownBlock(block: Fields, owner: string | undefined): readonly Fields[] {
  if (!isSigned(block)) return [block]
  const opaque = readOpaque(opaqueOf(block))
  if (!opaque || opaque.provider !== owner || !isFields(opaque.data)) return []
  const { signature, redacted } = opaque.data
  if (typeof signature === 'string') return [{ type: 'thinking', thinking: opaque.text ?? block.thinking ?? '', signature }]
  return typeof redacted === 'string' ? [{ type: 'redacted_thinking', data: redacted }] : []
}
