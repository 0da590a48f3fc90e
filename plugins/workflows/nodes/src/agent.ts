import { type SlotView, svcError, type CallContext } from '@svc/core'
import type { Budget, Chat, PublicError, Json, NodeStep, Tool, TurnEnd, TurnRequest, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { interrupted, missingService } from './errors.ts'
import { isReading } from './tool.ts'

/** Services of the agent node. */
export interface AgentOptions {
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
  readonly turn_limit_ms?: number
}

const text = (description: string) => ({ type: 'string', minLength: 1, description })
const count = (description: string, minimum = 0) => ({ type: 'integer', minimum, description })

const SETTINGS = objectOf(
  {
    prompt: text('Prompt for the model'),
    system: text("System prompt that replaces the profile's; the prompt of the mode is still added"),
    profile: text('Profile; default: the active one'),
    mode: text("Mode; default: the profile's, else the active one"),
    provider: text('Provider'),
    model: text('Model or alias'),
    temperature: { type: 'number', minimum: 0, maximum: 1, description: 'From 0 to 1' },
    max_tokens: count('Maximum tokens in a reply of the model', 1),
    tools: {
      type: 'array',
      items: text('Tool'),
      description: "Names of tools; default: the profile's, else all that the mode allows; an empty list allows none",
    },
    budget: {
      ...objectOf(
        {
          tool_calls: count('Maximum tool calls'),
          tokens: count('Maximum tokens of input and output together'),
          cost: { type: 'number', minimum: 0, description: 'Maximum cost, in the currency of models.prices' },
        },
        ['tool_calls', 'tokens', 'cost']
      ),
      description: 'Budget of the node, within the outer budgets',
    },
    output: { type: 'object', description: 'JSON Schema of the answer, which is then available as `data`' },
    turn_limit_ms: count(
      'Time limit of the turn in milliseconds; unlike `timeout`, the run counts what the turn used until then',
      1
    ),
  },
  ['system', 'profile', 'mode', 'provider', 'model', 'temperature', 'max_tokens', 'tools', 'budget', 'output', 'turn_limit_ms']
)

const OUTPUT = objectOf(
  {
    text: { type: 'string', description: 'Text of the model' },
    data: { description: 'The answer as data, if `output` is set' },
    provider: { type: 'string' },
    model: { type: 'string' },
    tokens: { type: 'integer', description: 'Tokens of input and output together' },
    cost: { type: 'number', description: 'Cost of the models with a price' },
    tools_used: {
      type: 'array',
      items: objectOf(
        {
          tool: { type: 'string' },
          success: { type: 'boolean' },
          error: { type: 'string' },
        },
        ['error']
      ),
    },
  },
  ['data', 'cost']
)

/** The engine enforces the time limit of the node. */
const LONGEST_MS = 86_400_000

/** Creates the node type `agent`, which asks a model. */
export const createAgent = ({ chat, tools }: AgentOptions): WorkflowNode => ({
  description: 'Asks a model, which can use tools. Returns its text, or data of the schema `output`.',
  settings: SETTINGS,
  output: OUTPUT,
  repeatable: 'itself',
  names: { profile: 'profile', mode: 'mode', tools: 'tools' },
  async *run(task, ctx) {
    if (!chat) throw missingService('agent', 'a chat', '@svc/plugin-chat')
    const settings = task.settings as unknown as AgentSettings
    const budget = tightest(settings.budget, task.allowance)
    if (task.interrupted && !isHarmless(settings, budget, tools))
      throw interrupted(task.node, 'its tools may have changed something')
    const isBound = (name: string) => tools.get(name)?.workplace === true
    yield* answered(
      chat.stream(turnOf(settings, budget), { ...ctx, idempotencyKey: task.idempotencyKey }),
      { budget, isBound },
      ctx
    )
  },
})

/** The lower of two budgets. */
function tightest(item: Budget = {}, other: Budget): Budget {
  const least = (a = Number.POSITIVE_INFINITY, b = Number.POSITIVE_INFINITY) => Math.min(a, b)
  const [calls, tokens] = [least(item.tool_calls, other.tool_calls), least(item.tokens, other.tokens)]
  const cost = least(item.cost, other.cost)
  return {
    ...(calls < Infinity ? { tool_calls: calls } : {}),
    ...(tokens < Infinity ? { tokens } : {}),
    ...(cost < Infinity ? { cost } : {}),
  }
}

/** Whether the tools of a turn can only read. */
const isHarmless = ({ tools: named }: AgentSettings, { tool_calls: calls }: Budget, tools: SlotView<Tool>) =>
  calls === 0 || named?.every(name => isReading(tools.get(name))) === true

const turnOf = (
  settings: AgentSettings,
  { tool_calls: toolBudget, tokens: tokenBudget, cost: costBudget }: Budget
): TurnRequest => {
  const { prompt, max_tokens: maxTokens, output: responseSchema, budget: _budget, turn_limit_ms: limitMs, ...same } = settings
  return {
    ...same,
    message: prompt,
    keep: false,
    timeoutMs: limitMs ?? LONGEST_MS,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(responseSchema === undefined ? {} : { responseSchema }),
    ...(toolBudget === undefined ? {} : { toolBudget }),
    ...(tokenBudget === undefined ? {} : { tokenBudget }),
    ...(costBudget === undefined ? {} : { costBudget }),
  }
}

type Events = ReturnType<Chat['stream']>

interface AnsweredTurn {
  readonly budget: Budget
  /** Whether a tool uses files or processes of this machine. */
  readonly isBound: (tool: string) => boolean
}

/** Yields the progress of a turn, its cost and its answer. Throws the error of a failed turn. */
async function* answered(events: Events, { budget, isBound }: AnsweredTurn, ctx: CallContext): AsyncGenerator<NodeStep> {
  let said = ''
  let failure: PublicError | undefined
  for await (const event of events) {
    if (event.type === 'token') said += event.content
    else if (event.type === 'tool_call') {
      if (isBound(event.tool)) yield { type: 'workplace' }
      yield { type: 'progress', message: `calls ${event.tool}` }
    } else if (event.type === 'error') failure = event.error
    else if (event.type === 'end') {
      yield spentIn(event, budget)
      if (failure) throw svcError(failure.code, failure.message, { details: { ...failure.details } })
      ctx.signal.throwIfAborted()
      yield { type: 'output', output: outputOf(said, event) }
    }
  }
}

/** The turn also lists tool calls that were refused because of the budget. */
function spentIn(
  { usage: { input, output }, cost, toolsUsed }: TurnEnd,
  { tool_calls: most = Number.POSITIVE_INFINITY }: Budget
): NodeStep {
  const calls = Math.min(toolsUsed.length, most)
  return { type: 'spent', tokens: { input, output }, tool_calls: calls, ...(cost === undefined ? {} : { cost }) }
}

const LONGEST_ERROR = 500

const outputOf = (said: string, { data, provider, model, usage, cost, toolsUsed }: TurnEnd): Json => ({
  text: said,
  ...(data === undefined ? {} : { data }),
  provider,
  model,
  tokens: usage.total,
  ...(cost === undefined ? {} : { cost }),
  tools_used: toolsUsed.map(({ tool, success, error }) => ({
    tool,
    success,
    ...(error === undefined ? {} : { error: error.slice(0, LONGEST_ERROR) }),
  })),
})
