import type { CallContext } from '@svc/core'
import type { ModelCallEnd, ModelCallEvent, ModelCallOrder, ModelMessage, OpenRequest, RequestField } from '@svc/core/contracts'
import { offeredTools } from './tool-list.ts'
import type { ChatServices, Turn } from './turn.ts'

/** One model step of a turn: a call of the service `ModelCalls`. */
export class ModelStep {
  readonly #events: AsyncIterator<ModelCallEvent>
  readonly #stop: AbortController

  /** `ctx.signal` is that of `stop`. The first `next` calls the model. */
  constructor(services: ChatServices, turn: Turn, number: number, withTools: boolean, stop: AbortController, ctx: CallContext) {
    this.#events = services.modelCalls.stream(orderOf(services, turn, number, withTools), ctx)[Symbol.asyncIterator]()
    this.#stop = stop
  }

  /** The next event. Throws the errors of the call, after its `end` event. */
  next(): Promise<IteratorResult<ModelCallEvent>> {
    return this.#events.next()
  }

  /** Aborts the call and returns its end, with the partial answer. */
  async abandon(): Promise<ModelCallEnd | undefined> {
    this.#stop.abort()
    try {
      for (;;) {
        const { done, value } = await this.#events.next()
        if (done) return undefined
        if (value.type === 'end') return value
      }
    } catch {
      // the error of the call is that of the turn, which handles it
      return undefined
    } finally {
      await this.#events.return?.()
    }
  }
}

/** The call of a model step. Past turns are its history, which `ModelCalls` shortens. */
function orderOf(services: ChatServices, turn: Turn, round: number, withTools: boolean): ModelCallOrder {
  const { asked, gathered, selected, who, tried, open, usage, cost } = turn
  const { config } = services
  return {
    request: requestOf(services, turn, withTools),
    selected,
    defaults: defaultsOf(turn),
    history: open.turns,
    step: { turn: turn.id, round, model: who, tried },
    ...(asked.tokenBudget === undefined ? {} : { budget: { total: asked.tokenBudget, spent: usage.input + usage.output } }),
    ...(asked.costBudget === undefined ? {} : { costBudget: { total: asked.costBudget, spent: cost ?? 0 } }),
    limits: {
      firstMs: (gathered ? config.whole_timeout_ms : undefined) ?? config.first_token_timeout_ms,
      betweenMs: config.token_timeout_ms,
      timeoutMs: turn.limitMs,
      leftMs: turn.until - performance.now(),
      answerLimit: config.answer_limit,
      argumentsLimit: config.tool_arguments_limit,
    },
  }
}

/** Fields that the profile, the mode or a tool has set, and not the caller. */
function defaultsOf({ asked }: Turn): readonly RequestField[] {
  // of images in past turns, the model gets a note; those of this turn are what the caller asks about
  const fields: RequestField[] = [...(asked.parts ? [] : (['images'] as const)), ...(asked.defaults ?? [])]
  if (!asked.tools && !asked.clientTools) fields.push('tools')
  if (asked.temperature === undefined && asked.parameters?.temperature === undefined) fields.push('temperature')
  if (asked.maxTokens === undefined) fields.push('maxTokens')
  return fields
}

/** The tools of svc and those of the client, whose names take precedence. */
function toolsOf({ asked: { clientTools = [] }, clientTools: names, list, added }: Turn): Pick<OpenRequest, 'tools' | 'indexed'> {
  const offered = offeredTools(list, added)
  if (clientTools.length === 0) return offered
  return { ...offered, tools: [...(offered.tools ?? []).filter(({ name }) => !names.has(name)), ...clientTools] }
}

/** The request of a model step, without past turns. */
function requestOf(services: ChatServices, turn: Turn, withTools: boolean): OpenRequest {
  const { asked, gathered, selected, open, made, aside } = turn
  const temperature = asked.temperature ?? asked.parameters?.temperature ?? selected.profile.temperature
  const maxTokens = asked.maxTokens ?? selected.profile.maxTokens
  const system = systemMessages(asked.system ?? selected.profile.systemPrompt, services.modes.get(selected.mode)?.prompt)
  const own = aside ? made.toSpliced(aside.at, 0, ...aside.messages) : made
  const messages: ModelMessage[] = [...system, ...turn.system, ...turn.prior, ...own]
  return {
    ...asked.parameters,
    messages,
    ...(withTools ? toolsOf(turn) : {}),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(asked.responseSchema === undefined ? {} : { responseSchema: asked.responseSchema }),
    ...(open.conversationId === '' ? {} : { cacheKey: open.conversationId }),
    ...(gathered ? { gathered } : {}),
  }
}

/** The system message: the prompt of the turn or profile, then the prompt of the mode. */
function systemMessages(prompt: string | undefined, modePrompt: string | undefined): ModelMessage[] {
  const text = [prompt, modePrompt].filter(Boolean).join('\n\n')
  return text === '' ? [] : [{ role: 'system', parts: [{ type: 'text', text }] }]
}
