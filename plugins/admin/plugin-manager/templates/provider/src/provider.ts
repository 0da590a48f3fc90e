import { schema, svcError } from '@svc/core'
import type { ModelRequest, Provider } from '@svc/core/contracts'

//js: /** @typedef {{ greeting: string }} SampleWordConfig */
/** Its entry in `providers` of the configuration. */
export interface SampleWordConfig {
  greeting: string
}

//js: /** @type {import('@svc/core').Schema<SampleWordConfig>} */
export const CONFIG = schema<SampleWordConfig>({
  type: 'object',
  additionalProperties: false,
  properties: { greeting: { type: 'string', default: 'You said:', description: 'Start of each answer.' } },
})

const MODEL = 'sample-1'
const CHARACTERS_A_TOKEN = 3

/** The last message of the user. */
//js: /** @type {(request: import('@svc/core/contracts').ModelRequest) => string} */
const lastText = ({ messages }: ModelRequest) =>
  messages
    .at(-1)
    ?.parts.map(part => (part.type === 'text' ? part.text : ''))
    .join('') ?? ''

//js: /** @type {(text: string) => number} */
const tokensOf = (text: string) => Math.ceil(text.length / CHARACTERS_A_TOKEN)

//js: /** @type {(config: SampleWordConfig) => import('@svc/core/contracts').Provider} */
export const createSampleWord = ({ greeting }: SampleWordConfig): Provider => ({
  features: { tool_calling: false, streaming: true, vision: false },
  models: async () => ({ models: [{ id: MODEL, context: 8000, output: 1000 }], open: false }),
  countTokens: async request => tokensOf(JSON.stringify(request.messages)),
  // checks whether it can be reached, without a billed call; throws MODEL_FAILED with the reason
  probe: async () => undefined,
  async *chat(request, { signal }) {
    signal.throwIfAborted()
    const text = `${greeting} ${lastText(request)}`
    if (text.includes('/fail'))
      throw svcError('MODEL_FAILED', 'asked to fail', { details: { kind: 'overloaded', retryable: true } })
    for (const word of text.split(/(?<= )/)) {
      signal.throwIfAborted()
      yield { type: 'text', text: word }
    }
    yield { type: 'usage', usage: { input: tokensOf(lastText(request)), output: tokensOf(text) } }
    yield { type: 'finish', reason: 'stop' }
  },
})
