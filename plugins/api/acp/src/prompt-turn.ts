import { randomUUID } from 'node:crypto'
import type {
  PermissionOption,
  PromptResponse,
  SessionUpdate,
  StopReason,
  ToolCallContent,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import { codeOf, isTree, svcError, type CallContext, type SlotView, withTimeout } from '@svc/core'
import type { Provider, ToolAnswer, TurnEnd, TurnEvent, TurnRequest } from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'
import { requestErrorOf } from './errors.ts'
import { type Arguments, type Editor, type RunningTurn, sendUpdate, type Session } from './session.ts'
import { resultView, type ToolView, viewOf } from './tool-view.ts'

/** A tool call that the editor shows, until its result. */
interface OpenCall {
  readonly toolCallId: string
  readonly tool: string
  readonly args: Arguments
  readonly view: ToolView
  /** A running tool of the editor shows its own content: a terminal or a change. */
  isClaimed: boolean
  content: ToolCallContent[] | undefined
  /** Ends the question to the user. */
  readonly answered: AbortController
}

/** Milliseconds after a cancellation until the prompt is answered, even if the turn has not ended. */
const GRACE_MS = 1_000

/** Longer than a server of a session can take to connect or to fail. */
const READY_MS = 60_000

/** One prompt: a turn of chat whose events the editor shows. */
export class PromptTurn implements RunningTurn {
  readonly requestId = randomUUID()
  readonly editor: Editor
  readonly session: Session
  readonly done: Promise<unknown>
  readonly #stop = new AbortController()
  readonly #calls = new Map<string, OpenCall>()
  readonly #number: number
  readonly #work: Promise<StopReason>
  #isOver = false

  /** Starts the turn. */
  constructor(editor: Editor, session: Session, message: string) {
    this.editor = editor
    this.session = session
    this.#number = ++session.turns
    editor.turns.set(this.requestId, this)
    this.#work = this.#run(message)
    this.done = this.#work.catch(() => {}).finally(() => editor.turns.delete(this.requestId))
  }

  /** Resolves with the stop reason; at the latest a moment after `cancel`. */
  async response(): Promise<PromptResponse> {
    const cancelled = Promise.withResolvers<StopReason>()
    let timer: NodeJS.Timeout | undefined
    const onAbort = () => (timer = setTimeout(() => cancelled.resolve('cancelled'), GRACE_MS))
    this.#stop.signal.addEventListener('abort', onAbort, { once: true })
    try {
      return { stopReason: await Promise.race([this.#work, cancelled.promise]) }
    } finally {
      this.#isOver = true
      this.#stop.signal.removeEventListener('abort', onAbort)
      clearTimeout(timer)
    }
  }

  cancel(): void {
    this.#stop.abort(svcError('CANCELLED', 'the editor has cancelled the turn'))
  }

  /** Finds the shown call of a tool of the editor that starts now. A plugin can have changed its arguments. */
  claim(tool: string, args: Arguments): OpenCall | undefined {
    const open = [...this.#calls.values()].filter(call => call.tool === tool && !call.isClaimed)
    const text = JSON.stringify(args)
    const call = open.find(item => JSON.stringify(item.args) === text) ?? open[0]
    if (call) call.isClaimed = true
    return call
  }

  async showContent(call: OpenCall | undefined, content: ToolCallContent[], more: Partial<ToolCallUpdate> = {}): Promise<void> {
    if (!call) return
    call.content = content
    await this.#show({ sessionUpdate: 'tool_call_update', toolCallId: call.toolCallId, content, ...more })
  }

  async #show(update: SessionUpdate): Promise<void> {
    if (!this.#isOver) await sendUpdate(this.editor, this.session, update)
  }

  async #run(message: string): Promise<StopReason> {
    const ctx = { ...this.editor.own, signal: this.#stop.signal, requestId: this.requestId }
    try {
      await this.#untilReady()
      return await this.#follow(message, ctx)
    } catch (error) {
      if (this.#stop.signal.aborted) return 'cancelled'
      const reason = stopReasonOfFailure(error)
      if (reason !== undefined) return reason
      throw requestErrorOf(error, this.session.id)
    } finally {
      await this.#closeCalls()
    }
  }

  /** Waits for the MCP servers of the session, and tells the user which are not used. */
  async #untilReady(): Promise<void> {
    const { session, editor } = this
    const { signal } = this.#stop
    await withTimeout(READY_MS, () => session.ready, { signal })
    const { notice } = session
    session.notice = undefined
    // the log has it too
    if (notice === undefined || !editor.capabilities.session?.notices) return
    const title = 'Some MCP servers of the editor are not used'
    await this.#show({ sessionUpdate: 'notice', severity: 'warning', title, description: notice })
  }

  async #follow(message: string, ctx: CallContext): Promise<StopReason> {
    let failure: unknown
    for await (const event of this.#events(message, ctx)) {
      if (event.type === 'error') failure = event.error
      else if (event.type === 'end') {
        await this.#keep(event.status === 'completed')
        return stopReasonOf(event, failure)
      } else await this.#take(event, ctx)
    }
    throw svcError('INTERNAL_ERROR', 'the turn ended without an end event')
  }

  /** A conversation that was not kept does not exist: the turn begins a new one. */
  async *#events(message: string, ctx: CallContext): AsyncGenerator<TurnEvent> {
    const { chat } = this.editor.services
    let hasBegun = false
    try {
      for await (const event of chat.stream(this.#request(message), ctx)) {
        hasBegun = true
        yield event
      }
    } catch (error) {
      if (hasBegun || this.session.isKept || codeOf(error) !== 'CONVERSATION_UNKNOWN') throw error
      this.session.conversationId = undefined
      yield* chat.stream(this.#request(message), ctx)
    }
  }

  #request(message: string): TurnRequest {
    const { config, providers } = this.editor.services
    const { conversationId, mode } = this.session
    return {
      message,
      mode,
      interactive: true,
      reasoning: true,
      timeoutMs: config.turn_timeout_ms,
      ...modelOf(config.model, providers),
      ...definedOf({ conversationId, profile: config.profile }),
    }
  }

  async #take(event: Exclude<TurnEvent, { type: 'error' | 'end' }>, ctx: CallContext): Promise<void> {
    switch (event.type) {
      case 'start':
        return this.#start(event.conversationId)
      case 'token':
        return this.#show({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: event.content } })
      case 'reasoning':
        return this.#show({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: event.content } })
      case 'tool_call':
        return this.#showCall(event)
      case 'ask':
        return void this.#ask(event, ctx)
      case 'tool_result':
        return this.#showResult(event)
    }
  }

  async #start(conversationId: string): Promise<void> {
    if (this.session.conversationId === conversationId) return
    this.session.conversationId = conversationId
    await this.#keep(false)
  }

  /** The record precedes the conversation: a session whose turn was acknowledged can always be loaded. */
  async #keep(isKept: boolean): Promise<void> {
    if (isKept) this.session.isKept = true
    await keepSession(this.editor, this.session)
  }

  async #showCall({ tool, callId, arguments: args }: Extract<TurnEvent, { type: 'tool_call' }>): Promise<void> {
    const { tools } = this.editor.services
    const known = tools.get(tool)
    const view = viewOf(tool, known, args, this.session.cwd)
    const toolCallId = `${this.#number}/${callId}`
    const call = { toolCallId, tool, args, view, isClaimed: false, content: undefined, answered: new AbortController() }
    this.#calls.set(callId, call)
    await this.#show({
      sessionUpdate: 'tool_call',
      toolCallId,
      ...view,
      status: known?.asks ? 'pending' : 'in_progress',
    })
  }

  async #showResult({ callId, success, result, error }: Extract<TurnEvent, { type: 'tool_result' }>): Promise<void> {
    const call = this.#calls.get(callId)
    if (!call) return
    this.#calls.delete(callId)
    call.answered.abort()
    const { content, ...output } = resultView(success ? result : (error ?? result))
    await this.#show({
      sessionUpdate: 'tool_call_update',
      toolCallId: call.toolCallId,
      status: success ? 'completed' : 'failed',
      // content replaces what is there
      ...(call.content === undefined ? { content } : success ? {} : { content: [...call.content, ...content] }),
      ...output,
    })
  }

  /** Calls without a result, when the turn was cancelled or has failed. */
  async #closeCalls(): Promise<void> {
    for (const { toolCallId, answered } of this.#calls.values()) {
      answered.abort()
      await this.#show({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed' }).catch(() => {})
    }
    this.#calls.clear()
  }

  /** Asks the user, and passes the answer to chat. Never throws. */
  async #ask(event: Extract<TurnEvent, { type: 'ask' }>, ctx: CallContext): Promise<void> {
    const { chat, log } = this.editor.services
    const { callId } = event
    const call = this.#calls.get(callId)
    try {
      const answer = await this.#permission(event, call)
      await chat.answer({ requestId: this.requestId, callId, ...answer }, ctx)
      if (answer.allow && call)
        await this.#show({ sessionUpdate: 'tool_call_update', toolCallId: call.toolCallId, status: 'in_progress' })
    } catch (err) {
      // the turn has ended, or chat no longer waits
      log.debug({ err, tool: event.tool }, 'an answer to a permission request came too late')
    }
  }

  async #permission(
    { tool, question, arguments: args }: Extract<TurnEvent, { type: 'ask' }>,
    call: OpenCall | undefined
  ): Promise<Pick<ToolAnswer, 'allow' | 'reason'>> {
    const { client } = this.editor
    if (this.session.allowed.has(tool)) return { allow: true }
    const signal = AbortSignal.any([this.#stop.signal, ...(call ? [call.answered.signal] : [])])
    const view = viewOf(tool, this.editor.services.tools.get(tool), args, this.session.cwd)
    const content: ToolCallContent[] = [
      { type: 'content', content: { type: 'text', text: question } },
      ...(await this.editor.preview(this, tool, args, signal)),
    ]
    const toolCall = { toolCallId: call?.toolCallId ?? `${this.#number}/${tool}`, ...view, status: 'pending' as const, content }
    let answer: unknown
    try {
      const request = { sessionId: this.session.id, toolCall, options: OPTIONS }
      const waiting = { cancellationSignal: signal, stopWaitingOnCancel: true }
      answer = await client.request('session/request_permission', request, waiting)
    } catch (error) {
      signal.throwIfAborted()
      this.editor.services.log.warn({ err: error, tool }, 'the editor could not ask the user; the tool call is denied')
      return { allow: false, reason: 'the editor could not ask the user.' }
    }
    const chosen = chosenIn(answer)
    if (chosen === ALLOW_ALWAYS) this.session.allowed.add(tool)
    return chosen === ALLOW_ONCE || chosen === ALLOW_ALWAYS
      ? { allow: true }
      : { allow: false, reason: 'the user denied the call.' }
  }
}

const ALLOW_ONCE = 'allow_once'
const ALLOW_ALWAYS = 'allow_always'
const OPTIONS: PermissionOption[] = [
  { optionId: ALLOW_ONCE, name: 'Allow once', kind: 'allow_once' },
  { optionId: ALLOW_ALWAYS, name: 'Allow this tool in this session', kind: 'allow_always' },
  { optionId: 'reject_once', name: 'Deny', kind: 'reject_once' },
]

/** The id of the chosen option. The answer is unchecked. */
function chosenIn(answer: unknown): unknown {
  const outcome = isTree(answer) ? answer.outcome : undefined
  return isTree(outcome) && outcome.outcome === 'selected' ? outcome.optionId : undefined
}

const BY_FINISH = {
  stop: 'end_turn',
  length: 'max_tokens',
  content_filter: 'refusal',
  // the last step that chat allows has no tools
  tool_calls: 'max_turn_requests',
} as const satisfies Record<NonNullable<TurnEnd['finish']>, StopReason>

/** Throws the failure of a failed turn. */
function stopReasonOf({ status, finish }: TurnEnd, failure: unknown): StopReason {
  if (status === 'cancelled') return 'cancelled'
  if (status === 'failed') throw failure
  return finish === undefined ? 'end_turn' : BY_FINISH[finish]
}

/** Failures that the protocol has a stop reason for. */
function stopReasonOfFailure(error: unknown): StopReason | undefined {
  const { code, details } = Object(error) as { readonly code?: unknown; readonly details?: unknown }
  if (code === 'BUDGET_EXHAUSTED') return 'max_tokens'
  return code === 'MODEL_FAILED' && isTree(details) && details.kind === 'content_refused' ? 'refusal' : undefined
}

/** `<provider>/<model>` if there is such a provider; else a model or an alias. */
function modelOf(name: string | undefined, providers: SlotView<Provider>): Pick<TurnRequest, 'provider' | 'model'> {
  if (name === undefined) return {}
  const at = name.indexOf('/')
  return at > 0 && providers.has(name.slice(0, at)) ? { provider: name.slice(0, at), model: name.slice(at + 1) } : { model: name }
}

/** Stores the session, from its first turn on. The turn goes on without it. */
export async function keepSession({ records, own, services }: Editor, session: Session): Promise<void> {
  const { id, conversationId, cwd, mode, title } = session
  if (conversationId === undefined) return
  try {
    await records.put({ id, conversation: conversationId, cwd, mode, title, updated: new Date().toISOString() }, own)
  } catch (err) {
    services.log.warn({ err, session: id }, 'failed to store a session; it cannot be loaded later')
  }
}
