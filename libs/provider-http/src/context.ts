import type { ModelFailure } from '@svc/core/contracts'

/** How upstreams say that a request is longer than the model's context. */
const WORDS =
  /context[ _](length|window|size)|maximum context|too many (input )?tokens|prompt is too long|input (is )?too long|(exceeds?|longer than).{0,40}(context|number of tokens|token limit)/i
const LIMITS = [/maximum context length (?:is|of) (\d+)/i, /> (\d+) maximum/i, /tokens allowed \((\d+)\)/i, /n_ctx["' :=]+(\d+)/i]
const COUNTS = [
  /(?:resulted in|requested(?: about)?) (\d+) tokens/i,
  /(\d+) tokens > \d+/i,
  /token count \((\d+)\)/i,
  /n_prompt_tokens["' :=]+(\d+)/i,
]

/** The tokens allowed and counted, where a message says that the context is too long; `undefined` where it says something else. */
export function contextSizes(message: string): Pick<ModelFailure, 'limit' | 'count'> | undefined {
  if (!WORDS.test(message)) return undefined
  const [limit, count] = [first(LIMITS, message), first(COUNTS, message)]
  return { ...(limit === undefined ? {} : { limit }), ...(count === undefined ? {} : { count }) }
}

function first(patterns: readonly RegExp[], message: string): number | undefined {
  for (const pattern of patterns) {
    const found = pattern.exec(message)?.[1]
    if (found !== undefined && Number.isSafeInteger(Number(found))) return Number(found)
  }
  return undefined
}
