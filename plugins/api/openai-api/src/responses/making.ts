import { randomUUID } from 'node:crypto'
import type { CallContext } from '@svc/core'
import type { Http, Json, ModelCallBegun, ModelMessage, NamedCall, NamedModels, StoreOp } from '@svc/core/contracts'
import { nowSeconds } from '../chat/wire.ts'
import { unsupportedParam } from '../errors.ts'
import { droppedBy, droppedHeader, textIn } from '../fields.ts'
import { inputTooLarge } from './errors.ts'
import { readItems } from './items.ts'
import { Output } from './output.ts'
import { type AskedResponse, DEFAULTS, NAMES } from './request.ts'
import type { Retention, ResponseStore, StoredResponse } from './store.ts'

/** What the routes and the background job work with. */
export interface ResponseServices {
  readonly named: NamedModels
  readonly http: Http
  readonly responses: ResponseStore
  readonly limits: ResponseLimits
}

export interface ResponseLimits {
  /** Milliseconds for which responses are kept that the client asked to store. */
  readonly keepMs: number
  /** Milliseconds for which the items of other responses are kept. */
  readonly keepItemsMs: number
  /** Maximum characters of a request whose response is stored. */
  readonly maxSize: number
}

/** A response that is about to be made. */
export interface Prepared {
  readonly asked: AskedResponse
  readonly hex: string
  readonly createdAt: number
  readonly call: NamedCall
  /** The items of the request, without references. */
  readonly input: readonly Json[]
  /** The messages of these items. */
  readonly turn: readonly ModelMessage[]
  readonly kept: Retention | undefined
  readonly echo: AskedResponse['echo']
}

/** The protocol among providers. */
const PROTOCOL = 'openai-responses'
/** Maximum characters of a request whose items are kept without being asked for. */
const LARGEST_UNASKED = 1024 * 1024

/** Reads all that the request refers to. Throws INVALID_VALUE, MODEL_NOT_FOUND. */
export async function prepare(
  asked: AskedResponse,
  { named, responses, limits }: ResponseServices,
  ctx: CallContext,
  id = { hex: randomUUID().replaceAll('-', ''), createdAt: nowSeconds() }
): Promise<Prepared> {
  const { previous, instructions, leftovers, model } = asked
  const before = previous === undefined ? [] : await responses.chain(previous, ctx)
  const input = await responses.resolve(asked.input, ctx)
  const placed = input.map((item, at) => ({ item, param: `input[${at}]` }))
  const history = readItems([...before, ...placed], leftovers)
  const [foreign] = leftovers.foreign
  if (foreign !== undefined) {
    await named.find(model, ctx)
    throw unsupportedParam(foreign, model)
  }
  const system: ModelMessage[] =
    instructions === undefined ? [] : [{ role: 'system', parts: [{ type: 'text', text: instructions }] }]
  const kept = keptOf(asked, limits)
  return {
    asked,
    ...id,
    call: { name: model, request: { ...asked.request, messages: [...system, ...history] }, defaults: DEFAULTS },
    input,
    turn: turnOf(history),
    kept,
    echo: { ...asked.echo, store: kept === 'response' },
  }
}

/** The messages after the last one of the model. */
const turnOf = (history: readonly ModelMessage[]) => history.slice(history.findLastIndex(({ role }) => role === 'assistant') + 1)

/** How the response is kept. Throws if the client wants it stored and it is too large. */
function keptOf(
  { store, input, instructions = '', echo }: AskedResponse,
  { keepItemsMs, maxSize }: ResponseLimits
): Retention | undefined {
  if (store === false || (store === undefined && keepItemsMs === 0)) return undefined
  const size = JSON.stringify(input).length + JSON.stringify(echo).length + instructions.length
  if (store === undefined) return size > Math.min(LARGEST_UNASKED, maxSize) ? undefined : 'items'
  if (size > maxSize) throw inputTooLarge(maxSize)
  return 'response'
}

export const outputOf = ({ asked, hex, createdAt, echo }: Prepared, from = 0): Output =>
  new Output({ hex, createdAt, echo, shows: asked.shows, tools: asked.tools, from })

/** The header with the fields that the model does not get. */
export async function headersOf(start: ModelCallBegun | undefined, asked: AskedResponse, named: NamedModels, ctx: CallContext) {
  if (!start) return droppedHeader([...asked.leftovers.dropped])
  return droppedHeader(await droppedBy(start, { ...asked, protocol: PROTOCOL, names: NAMES }, named, ctx))
}

const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
}

/** Gives the items of a request ids and a status. */
export const storedInput = (hex: string, input: readonly Json[]): Json[] =>
  input.map((item, at) => {
    const wire = item as { readonly type?: string; readonly status?: Json }
    const status = wire.type === 'reasoning' ? {} : { status: wire.status ?? 'completed' }
    return { ...wire, id: `${PREFIXES[wire.type ?? ''] ?? 'msg'}_${hex}_i${at}`, ...status } as Json
  })

/** The record of a response. */
export function recordOf(
  prepared: Prepared,
  response: StoredResponse['response'],
  size: number,
  owner: string,
  limits: ResponseLimits
) {
  const { asked, kept, createdAt } = prepared
  const { output: _, ...head } = response
  return {
    owner,
    kept: kept ?? 'items',
    createdAt: createdAt * 1000,
    expires: Date.now() + (kept === 'response' ? limits.keepMs : limits.keepItemsMs),
    response: head,
    status: textIn(response.status, 'status'),
    shows: asked.shows,
    size,
    ...(asked.previous === undefined || kept !== 'response' ? {} : { previous: asked.previous }),
  } satisfies StoredResponse
}

export interface Finished {
  readonly response: StoredResponse['response']
  readonly output: Output
}

/** The operations that store a response that is made. `version`: of its record, 0 if there is none. */
export async function storeOps(
  prepared: Prepared,
  { response, output }: Finished,
  { responses, limits }: ResponseServices,
  ctx: CallContext,
  before?: { readonly version: number; readonly record: StoredResponse }
): Promise<StoreOp[]> {
  const { hex, turn, kept, asked } = prepared
  const data = { input: storedInput(hex, prepared.input), output: output.items }
  const size = JSON.stringify(data).length
  const answer =
    kept === 'response'
      ? readItems(
          output.items.map(item => ({ item, param: 'output' })),
          asked.leftovers
        )
      : []
  const isTurn = kept === 'response' && response.status !== 'failed'
  const { conversation, ops } = isTurn
    ? await responses.keepTurn(hex, asked.previous, [...turn, ...answer], ctx)
    : { conversation: undefined, ops: [] }
  const record = {
    ...recordOf(prepared, response, size, ctx.principal.id, limits),
    ...(before?.record.job === undefined ? {} : { job: before.record.job }),
    ...(conversation === undefined ? {} : { conversation }),
  }
  return [...responses.ops(hex, before?.version ?? 0, record, data), ...ops]
}
