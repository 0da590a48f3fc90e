import type { ModelFailure, ModelFailureKind } from '@svc/core/contracts'
import { isTree, textIn, type Tree, treeIn } from '@svc/provider-http'

type Told = Partial<ModelFailure> & { readonly message?: string }

const KINDS = new Map<string, ModelFailureKind>(
  Object.entries({
    RESOURCE_EXHAUSTED: 'rate_limited',
    UNAVAILABLE: 'overloaded',
    INTERNAL: 'overloaded',
    UNKNOWN: 'overloaded',
    ABORTED: 'overloaded',
    DEADLINE_EXCEEDED: 'timeout',
    UNAUTHENTICATED: 'authentication',
    PERMISSION_DENIED: 'authentication',
    NOT_FOUND: 'bad_request',
  })
)

const BAD_KEY = /API_KEY_|API key (not valid|expired|not found)/i
const TOO_LONG = /token count.*exceeds|payload size exceeds/i
const COUNTS = /token count \((\d+)\) exceeds the maximum number of tokens allowed \((\d+)\)/i

/** What an error says, whether it is the body of an answer (an object, or a list of one) or a frame of a stream. */
export function failureOf(_status: number, body: unknown): Told {
  const error = treeIn(Array.isArray(body) ? body[0] : body, 'error')
  const message = textIn(error, 'message')
  const details = Array.isArray(error.details) ? error.details.filter(isTree) : []
  const retryAfterMs = delayOf(details)
  const kind = kindOf(error, message ?? '', details)
  return {
    ...(message === undefined ? {} : { message }),
    ...(kind === undefined ? {} : { kind }),
    ...(kind === 'context_too_long' ? sizesOf(message ?? '') : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}

function kindOf(error: Tree, message: string, details: readonly Tree[]): ModelFailureKind | undefined {
  if (BAD_KEY.test(message) || details.some(one => BAD_KEY.test(textIn(one, 'reason') ?? ''))) return 'authentication'
  return TOO_LONG.test(message) ? 'context_too_long' : KINDS.get(textIn(error, 'status') ?? '')
}

function sizesOf(message: string): Pick<ModelFailure, 'limit' | 'count'> {
  const [, count, limit] = COUNTS.exec(message) ?? []
  return limit === undefined ? {} : { limit: Number(limit), count: Number(count) }
}

const LONGEST_MS = 24 * 3600 * 1000

/** `{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}` */
function delayOf(details: readonly Tree[]): number | undefined {
  const info = details.find(one => textIn(one, '@type')?.endsWith('google.rpc.RetryInfo'))
  const seconds = /^(\d{1,12}(?:\.\d+)?)s$/.exec(textIn(info, 'retryDelay') ?? '')?.[1]
  return seconds === undefined ? undefined : Math.min(Math.ceil(Number(seconds) * 1000), LONGEST_MS)
}
