import { type CallContext, withTimeout } from '@svc/core'
import type { MessagePart, ModelMessage, ModelRequest, Provider, StoredMessage, Usage } from '@svc/core/contracts'

const LIMIT_MS = 1_000
/** One token for every tokenizer there is. */
const ONE = '.'

/**
 * What a model call has cost that ended before its provider told: counted by the provider itself. What cannot be counted any more (it is out of reach) is
 * estimated: a few tokens off are nearer to what was spent than none.
 */
export async function countTokens(
  provider: Provider | undefined,
  request: ModelRequest,
  answer: StoredMessage,
  ctx: CallContext
): Promise<Usage> {
  const said = answer.parts.map(wordsOf).join('')
  const estimate = { input: estimated(JSON.stringify(request.messages)), output: estimated(said) }
  if (!provider) return estimate
  const count = async (signal: AbortSignal): Promise<Usage> => {
    const ask = (one: ModelRequest) => provider.countTokens(one, { ...ctx, signal })
    const alone = (text: string) => ask({ model: request.model, messages: [userSays(text)] })
    const [input, whole, one] = await Promise.all([ask(request), alone(said), alone(ONE)])
    return { input, output: Math.max(0, whole - one + 1) }
  }
  return withTimeout(LIMIT_MS, count, ctx).catch(() => estimate)
}

const userSays = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })

const BYTES_A_TOKEN = 4
export const estimated = (text: string) => Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN)

function wordsOf(part: MessagePart): string {
  if (part.type === 'text' || part.type === 'reasoning') return part.text
  return part.type === 'tool_call' ? `${part.tool}${JSON.stringify(part.arguments)}` : ''
}
