import type { ModelFailure, ModelFailureKind } from '@svc/core/contracts'
import { textIn, treeIn } from '@svc/provider-http'

type Told = Partial<ModelFailure> & { readonly message?: string }

const KINDS = new Map<string, ModelFailureKind>(
  Object.entries({
    rate_limit_error: 'rate_limited',
    overloaded_error: 'overloaded',
    api_error: 'overloaded',
    timeout_error: 'timeout',
    authentication_error: 'authentication',
    permission_error: 'authentication',
    billing_error: 'authentication',
    not_found_error: 'bad_request',
    request_too_large: 'context_too_long',
  })
)

/** `prompt is too long: 208310 tokens > 200000 maximum`, ``input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000`` */
const TOO_LONG = /prompt is too long|exceed context limit|context window/i
const COUNTED = /(\d+)(?: tokens| \+ \d+) > (\d+)/
const REFUSED = /content filter|usage policy/i

/** What an error says, whether it is the body of an answer or an event inside a stream. */
export function failureOf(_status: number, body: unknown): Told {
  const error = treeIn(body, 'error')
  const message = textIn(error, 'message')
  const said = message === undefined ? {} : { message }
  const kind = KINDS.get(textIn(error, 'type') ?? '')
  if (kind !== undefined) return { ...said, kind }
  if (message === undefined) return {}
  if (TOO_LONG.test(message)) return { ...said, kind: 'context_too_long', ...countsOf(message) }
  return REFUSED.test(message) ? { ...said, kind: 'content_refused' } : said
}

function countsOf(message: string): Pick<ModelFailure, 'limit' | 'count'> {
  const [, count, limit] = COUNTED.exec(message) ?? []
  return limit === undefined ? {} : { limit: Number(limit), count: Number(count) }
}
