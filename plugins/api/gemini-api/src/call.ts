import { type Fields } from '@svc/api-types'
import type { CallContext } from '@svc/core'
import type { NamedCall, NamedModels, RequestField, RouteRequest } from '@svc/core/contracts'
import { hasOpaque } from './contents.ts'
import { DEFAULTS, lackedNames, type Translated, translate } from './request.ts'

/** The name of this API as a protocol of model servers. */
const PROTOCOL = 'google'

/** A request that is ready to be called. */
export interface PreparedCall {
  readonly translated: Translated
  readonly call: NamedCall
  /** Whether the server of the model speaks this API. Known only if it makes a difference. */
  readonly isNative: boolean
  /** The header that lists what the model of the answer does not get. */
  droppedHeader(dropped: readonly RequestField[], isNative: boolean): Readonly<Record<string, string>>
}

/** What the body is for: a whole answer, a stream, or the number of its tokens. */
export type Purpose = 'whole' | 'stream' | 'count'

/**
 * Reads a request for a model. A server that speaks this API gets the body itself, unless the body has signatures of svc: those are of
 * other models, or have to be unpacked for their own. Throws INVALID_VALUE, MODEL_NOT_FOUND.
 */
export async function prepare(
  models: NamedModels,
  name: string,
  { body: json, headers }: Pick<RouteRequest, 'body' | 'headers'>,
  purpose: Purpose,
  ctx: CallContext
): Promise<PreparedCall> {
  const body = json as Fields
  const translated = translate(body, purpose === 'stream')
  const { request, losses } = translated
  const canPass = !hasOpaque(body)
  const isDecided = canPass && (losses.refusal !== undefined || losses.dropped.size > 0)
  const model = isDecided ? await models.find(name, ctx) : undefined
  const isNative = model?.features?.protocol === PROTOCOL
  if (!isNative && losses.refusal && purpose !== 'count') throw losses.refusal
  const native = canPass ? { native: { protocol: PROTOCOL, body } } : {}
  return {
    translated,
    call: { name, request: { ...request, ...native }, defaults: DEFAULTS, ...keyOf(headers) },
    isNative,
    droppedHeader: (dropped, isPassedOn) =>
      headerOf([...(isPassedOn ? [] : losses.dropped), ...lackedNames(translated, dropped)]),
  }
}

/** The key with which a client repeats a request: a team or workflow runs only once. */
const keyOf = ({ 'idempotency-key': idempotencyKey }: RouteRequest['headers']) =>
  idempotencyKey === undefined ? {} : { idempotencyKey }

const LONGEST_HEADER = 1_000
const UNSAFE = /[^\x21-\x2b\x2d-\x7e]/g

/** The header `x-svc-dropped`. Names of fields come from the client. */
export function headerOf(names: readonly string[]): Readonly<Record<string, string>> {
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
