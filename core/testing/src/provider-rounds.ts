import type { ModelFailureKind, ModelRequest } from '@svc/core/contracts'
import type { ProviderRequests } from './provider-subject.ts'

type Tools = NonNullable<ProviderRequests['tools']>

/** Every kind of failure: `Object.fromEntries(FAILURE_KINDS.map(kind => [kind, asks(kind)]))` are the `failures` of a provider whose models fail by name. */
export const FAILURE_KINDS: readonly ModelFailureKind[] = [
  'rate_limited',
  'overloaded',
  'bad_request',
  'authentication',
  'context_too_long',
  'content_refused',
  'network',
  'timeout',
]

/** The `tools` of a provider that answers this request by asking for the weather in Ulm and in Bern; in the next round it is sunny in both. `provider`: who the answer is by, where it matters. */
export const weatherRound = (request: ModelRequest, provider?: string): Required<Tools> => ({
  request,
  calls: ['Ulm', 'Bern'].map(city => ({ tool: 'weather', arguments: { city } })),
  results: calls => ({
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', parts: calls, ...(provider === undefined ? {} : { provider }) },
      {
        role: 'tool',
        parts: calls.map(({ id, tool }) => ({
          type: 'tool_result',
          id,
          tool,
          content: [{ type: 'text', text: 'sunny' }],
          isError: false,
        })),
      },
    ],
  }),
})
