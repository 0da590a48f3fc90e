import type { Use } from '@svc/core'
import type { ModelInfo, ModelMessage, ModelRequest, Provider, Selected, StoredMessage } from '@svc/core/contracts'

export const userMessage = (text: string): StoredMessage => ({ role: 'user', parts: [{ type: 'text', text }] })

/** What the model is told before anything: the profile's words, then the mode's. */
export function systemMessages(selected: Selected, modePrompt: string | undefined): ModelMessage[] {
  const text = [selected.profile.systemPrompt, modePrompt].filter(Boolean).join('\n\n')
  return text === '' ? [] : [{ role: 'system', parts: [{ type: 'text', text }] }]
}

/** A past message as the provider `name` may see it: opaque data goes back only to whom it came from. */
function forProvider(message: StoredMessage, name: string): ModelMessage {
  const { status: _status, ...seen } = message
  if (message.role !== 'assistant' || message.provider === name) return seen
  const { providerData: _data, parts, ...rest } = seen
  const own = parts.filter(part => part.type !== 'reasoning')
  return { ...rest, parts: own.map(part => (part.type === 'tool_call' ? { ...part, providerData: undefined } : part)) }
}

// A token stands for at least one byte; so text of fewer bytes than the window has tokens fits without being counted.
const BYTES_A_CHARACTER = 3

/** The request with as many of the latest turns as the model's context holds; whole turns, so that no tool call loses its result. */
export async function fitHistory(
  request: ModelRequest,
  past: readonly (readonly StoredMessage[])[],
  { provider, name, info }: { provider: Provider; name: string; info: ModelInfo | undefined },
  use: Use
): Promise<ModelRequest> {
  const turns = past.map(turn => turn.map(message => forProvider(message, name)))
  const build = (from: number): ModelRequest => withHistory(request, turns.slice(from).flat())
  const whole = build(0)
  if (info?.context === undefined || turns.length === 0 || lengthOf(whole) * BYTES_A_CHARACTER < info.context) return whole
  const room = info.context - Math.min(request.maxTokens ?? info.output ?? 0, info.context / 2)
  return build(await firstThatFits(turns.length, async from => (await provider.countTokens(build(from), use)) <= room))
}

function withHistory(request: ModelRequest, history: readonly ModelMessage[]): ModelRequest {
  const at = request.messages.findIndex(message => message.role !== 'system')
  return { ...request, messages: [...request.messages.slice(0, at), ...history, ...request.messages.slice(at)] }
}

const lengthOf = ({ messages, tools = [] }: ModelRequest) =>
  messages
    .flatMap(message => message.parts)
    .reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : JSON.stringify(part).length), 0) +
  tools.reduce((sum, tool) => sum + 200 + tool.description.length, 0)

/** The lowest number of turns to leave out, by halving: leaving out more never needs more room. `count` when nothing else fits. */
async function firstThatFits(count: number, fits: (from: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >> 1
    if (await fits(middle)) high = middle
    else low = middle + 1
  }
  return low
}
