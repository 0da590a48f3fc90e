import { type CallContext, codeOf, messageOf, type SvcError, svcError } from '@svc/core'
import type { Http, RouteReply } from '@svc/core/contracts'
import { type ApiError, type ApiFailure, ERROR_FORMAT, modelFailure, renamed } from '../errors.ts'
import { NAMES } from './request.ts'

const REFUSED = 'RESPONSE_REFUSED'

/** An error that only these routes have. */
function refusal(status: number, code: string, message: string, param: string | null = null): SvcError {
  const error: ApiError = { message, type: 'invalid_request_error', code, param }
  return svcError(REFUSED, message, { details: { status, error } })
}

const shown = (id: string) => id.slice(0, 100)

/** Unknown ids and ids of other principals have the same error. */
export const responseNotFound = (id: string) =>
  refusal(404, 'response_not_found', `there is no stored response "${shown(id)}"`, 'response_id')

export const previousNotFound = (id: string) =>
  refusal(
    404,
    'previous_response_not_found',
    `there is no stored response "${shown(id)}": only responses of requests with store: true can be continued`,
    'previous_response_id'
  )

export const itemNotFound = (id: string, param: string) =>
  refusal(404, 'item_not_found', `there is no stored item "${shown(id)}": send the item itself, or send store: true`, param)

export const chainTooLong = () =>
  refusal(400, 'context_length_exceeded', 'the stored responses before this one are too long together', 'previous_response_id')

export const inputTooLarge = (limit: number) =>
  refusal(400, 'input_too_large', `a request of more than ${limit} bytes cannot be stored: send store: false`, 'input')

export const tooManyStored = (limit: number) =>
  refusal(
    429,
    'stored_responses_limit',
    `there are ${limit} stored responses already: delete some, or send store: false`,
    'store'
  )

export const notInBackground = (what: string) =>
  refusal(400, 'invalid_value', `only responses with background: true can be ${what}`, 'response_id')

export const backgroundUnavailable = () =>
  refusal(400, 'unsupported_parameter', 'this server executes no background jobs', 'background')

/** The response to an error of a route. Throws errors that the server itself answers. */
export async function failureOf(error: unknown, http: Http, ctx: CallContext): Promise<ApiFailure> {
  if (codeOf(error) === REFUSED) {
    const { status, error: api } = (error as SvcError).details as unknown as { status: number; error: ApiError }
    return { status, headers: status === 429 ? { 'x-should-retry': 'false' } : {}, error: api }
  }
  const failure = await modelFailure(error, 'input', http, ctx)
  if (!failure) throw renamed(error, NAMES)
  return failure
}

export const replyOf = ({ status, headers, error }: ApiFailure): RouteReply => ({ status, headers, body: { error } })

/** The error of a response that has begun: any error becomes one. */
export async function responseError(error: unknown, http: Http, ctx: CallContext): Promise<{ code: string; message: string }> {
  try {
    const { error: api } = await failureOf(error, http, ctx)
    return { code: api.code ?? 'server_error', message: api.message }
  } catch (other) {
    const { details } = Object(other) as { readonly details?: Readonly<Record<string, unknown>> }
    const failed = { code: codeOf(other) ?? 'INTERNAL_ERROR', message: messageOf(other), details: { ...details } }
    const { status, record } = await http.explain(failed, ctx)
    const { body } = await ERROR_FORMAT.format(
      { record, status, requestId: ctx.requestId, method: 'POST', path: '/v1/responses' },
      ctx
    )
    const { code, message } = body.error as ApiError
    return { code: code ?? 'server_error', message }
  }
}

/** Errors of the server in the middle of a stream of these routes. */
export const RESPONSES_FORMAT = {
  path: '/v1/responses',
  async format(...args: Parameters<typeof ERROR_FORMAT.format>) {
    const formatted = await ERROR_FORMAT.format(...args)
    const { code, message, param } = formatted.body.error as ApiError
    const event = { type: 'error', sequence_number: 0, code, message, param }
    return { ...formatted, event: `event: error\ndata: ${JSON.stringify(event)}\n\n` }
  },
}
