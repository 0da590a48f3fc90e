import { type SlotView, svcError, type CallContext } from '@svc/core'
import type { Budget, Chat, PublicError, Json, NodeStep, Tool, TurnEnd, TurnRequest, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { interrupted, missingService } from './errors.ts'
import { isReading } from './tool.ts'

/** What an agent works with. */
export interface AgentParts {
  readonly chat: Chat | undefined
  readonly tools: SlotView<Tool>
}

interface AgentSettings {
  readonly prompt: string
  readonly system?: string
  readonly profile?: string
  readonly mode?: string
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
  readonly max_tokens?: number
  readonly tools?: readonly string[]
  readonly budget?: Budget
  readonly output?: TurnRequest['responseSchema']
}

const text = (description: string) => ({ type: 'string', minLength: 1, description })
const count = (description: string, minimum = 0) => ({ type: 'integer', minimum, description })

const SETTINGS = objectOf(
  {
    prompt: text('What the model is told'),
    system: text("The system prompt instead of the profile's; the mode's is added all the same"),
    profile: text('A profile; default: the active one'),
    mode: text("A mode; default: the profile's, else the active one"),
    provider: text('A provider'),
    model: text('A model, or an alias'),
    temperature: { type: 'number', minimum: 0, maximum: 1, description: 'From 0 to 1' },
    max_tokens: count('Tokens that one answer of the model may have', 1),
    tools: {
      type: 'array',
      items: text('A tool'),
      description: "Names of tools; absent: the profile's, else all that the mode allows; empty: none",
    },
    budget: {
      ...objectOf({ tool_calls: count('Tool calls'), tokens: count('Tokens of input and output together') }, [
        'tool_calls',
        'tokens',
      ]),
      description: 'What it may spend, within the budgets round it',
    },
    output: { type: 'object', description: 'JSON Schema of the answer: then `data` is there' },
  },
  ['system', 'profile', 'mode', 'provider', 'model', 'temperature', 'max_tokens', 'tools', 'budget', 'output']
)

const OUTPUT = objectOf(
  {
    text: { type: 'string', description: 'What the model said' },
    data: { description: 'The same as data, where `output` was given' },
    provider: { type: 'string' },
    model: { type: 'string' },
    tokens: { type: 'integer', description: 'Input and output together' },
    tools_used: { type: 'array', items: objectOf({ tool: { type: 'string' }, success: { type: 'boolean' } }) },
  },
  ['data']
)

/** The engine's time limit of the node is what bounds a turn. */
const LONGEST_MS = 86_400_000

/** Makes the node that asks a model. */
export const createAgent = ({ chat, tools }: AgentParts): WorkflowNode => ({
  description: 'Asks a model, which may use tools. It answers text, or data of the schema `output`.',
  settings: SETTINGS,
  output: OUTPUT,
  repeatable: 'itself',
  names: { profile: 'profile', mode: 'mode', tools: 'tools' },
  async *run(task, ctx) {
    if (!chat) throw missingService('agent', 'a chat', '@svc/plugin-chat')
    const settings = task.settings as unknown as AgentSettings
    const budget = tightest(settings.budget, task.allowance)
    if (task.interrupted && !isHarmless(settings, budget, tools))
      throw interrupted(task.node, 'its tools may have done something')
    yield* answered(chat.stream(turnOf(settings, budget), { ...ctx, idempotencyKey: task.idempotencyKey }), budget, ctx)
  },
})

/** The lower of two budgets. */
function tightest(one: Budget = {}, other: Budget): Budget {
  const least = (a = Number.POSITIVE_INFINITY, b = Number.POSITIVE_INFINITY) => Math.min(a, b)
  const [calls, tokens] = [least(one.tool_calls, other.tool_calls), least(one.tokens, other.tokens)]
  return { ...(calls < Infinity ? { tool_calls: calls } : {}), ...(tokens < Infinity ? { tokens } : {}) }
}

/** Whether a turn can have done nothing but read. */
const isHarmless = ({ tools: named }: AgentSettings, { tool_calls: calls }: Budget, tools: SlotView<Tool>) =>
  calls === 0 || named?.every(name => isReading(tools.get(name))) === true

const turnOf = (settings: AgentSettings, { tool_calls: toolBudget, tokens: tokenBudget }: Budget): TurnRequest => {
  const { prompt, max_tokens: maxTokens, output: responseSchema, budget: _budget, ...same } = settings
  return {
    ...same,
    message: prompt,
    keep: false,
    timeoutMs: LONGEST_MS,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(responseSchema === undefined ? {} : { responseSchema }),
    ...(toolBudget === undefined ? {} : { toolBudget }),
    ...(tokenBudget === undefined ? {} : { tokenBudget }),
  }
}

type Events = ReturnType<Chat['stream']>

/** Tells what a turn does, what it has spent, and its answer. Throws what it failed with. */
async function* answered(events: Events, budget: Budget, ctx: CallContext): AsyncGenerator<NodeStep> {
  let said = ''
  let failure: PublicError | undefined
  for await (const event of events) {
    if (event.type === 'token') said += event.content
    else if (event.type === 'tool_call') yield { type: 'progress', message: `calls ${event.tool}` }
    else if (event.type === 'error') failure = event.error
    else if (event.type === 'end') {
      yield spentIn(event, budget)
      if (failure) throw svcError(failure.code, failure.message, { details: { ...failure.details } })
      ctx.signal.throwIfAborted()
      yield { type: 'output', output: outputOf(said, event) }
    }
  }
}

/** Calls that were wanted beyond the budget are among those of the turn, and were refused. */
function spentIn(
  { usage: { input, output }, toolsUsed }: TurnEnd,
  { tool_calls: most = Number.POSITIVE_INFINITY }: Budget
): NodeStep {
  return { type: 'spent', tokens: { input, output }, tool_calls: Math.min(toolsUsed.length, most) }
}

const outputOf = (said: string, { data, provider, model, usage, toolsUsed }: TurnEnd): Json => ({
  text: said,
  ...(data === undefined ? {} : { data }),
  provider,
  model,
  tokens: usage.total,
  tools_used: toolsUsed.map(({ tool, success }) => ({ tool, success })),
})
