import { randomUUID } from 'node:crypto'
import type {
  ClientCapabilities,
  ListSessionsRequest,
  ListSessionsResponse,
  LoadSessionRequest,
  LoadSessionResponse,
  McpServer,
  NewSessionRequest,
  NewSessionResponse,
  PromptRequest,
  PromptResponse,
  ResumeSessionRequest,
  SessionUpdate,
  SetSessionModeRequest,
  ContentBlock,
} from '@agentclientprotocol/sdk'
import { codeOf, withTimeout, type CallContext, type SlotView } from '@svc/core'
import type { Conversation, StoredMessage, ToolCall, ToolVerdict, Tool, ToolResultPart } from '@svc/core/contracts'
import { definedOf, oneLine, contentText } from '@svc/plugin-kit'
import { editorTools, previewOf } from './editor-tools.ts'
import { connectServers, leaveServers } from './mcp-servers.ts'
import { paramInvalid, promptRunning, requestErrorOf, sessionUnknown, tooManySessions } from './errors.ts'
import { keepSession, PromptTurn } from './prompt-turn.ts'
import { allows, type Editor, foldersOf, modeState, sendUpdate, type Session } from './session.ts'
import { resultView, viewOf } from './tool-view.ts'

/** Maximum open sessions of an editor. */
const MAX_SESSIONS = 256
/** Turns that a loaded session shows: all, as a conversation has at most 10,000 messages. */
const HISTORY = 10_000
const MAX_TITLE = 80
/** Time for aborted turns to be stored, when the editor has gone. */
const END_MS = 5_000

/** The sessions of a connected editor. */
export class Sessions {
  readonly #editor: Editor
  readonly #open = new Map<string, Session>()
  #undo: (() => void)[] = []

  constructor(parts: Omit<Editor, 'capabilities' | 'turns' | 'preview' | 'serverTools'>) {
    this.#editor = { ...parts, capabilities: {}, turns: new Map(), serverTools: new Map(), preview: previewOf }
  }

  /** Offers the tools of the editor. A repeated call replaces them. */
  initialize(capabilities: ClientCapabilities): void {
    const { services, turns } = this.#editor
    const { config, extend, modes } = services
    this.#removeTools()
    this.#editor.capabilities = capabilities
    this.#undo.push(extend.onToolCall((call, ctx) => this.#denied(call, ctx)))
    if (!config.editor_tools) return
    for (const [name, tool] of editorTools(this.#editor, modes.names(), requestId => turns.get(requestId)))
      this.#undo.push(extend.addTool(name, tool))
  }

  async create({ cwd, additionalDirectories = [], mcpServers }: NewSessionRequest): Promise<NewSessionResponse> {
    const { services } = this.#editor
    const roots = await foldersOf(cwd, additionalDirectories, services.protectedPaths)
    const mode = await this.#firstMode()
    const session = this.#add({ id: `sess_${randomUUID().replaceAll('-', '')}`, cwd, roots, mode, mcpServers })
    return { sessionId: session.id, modes: modeState(services.modes, mode) }
  }

  /** Opens a stored session, or any stored conversation by its id. `isShown`: the editor gets its past turns. */
  async load(asked: LoadSessionRequest | ResumeSessionRequest, isShown: boolean): Promise<LoadSessionResponse> {
    const { sessionId, cwd, additionalDirectories = [], mcpServers = [] } = asked
    const { services, records, own } = this.#editor
    mustBeId(sessionId)
    if (this.#open.get(sessionId)?.turn) throw promptRunning(sessionId)
    const roots = await foldersOf(cwd, additionalDirectories, services.protectedPaths)
    const record = await records.get(sessionId, own)
    const conversationId = record?.conversation ?? sessionId
    const past = await this.#past(sessionId, conversationId)
    const known = record && services.modes.has(record.mode) ? record.mode : undefined
    const mode = known ?? (await this.#firstMode())
    const before = this.#open.get(sessionId)
    if (before) await this.#leave(before)
    const session = this.#add({ id: sessionId, cwd, roots, mode, mcpServers })
    Object.assign(session, { conversationId, isKept: true, title: record?.title ?? '', turns: past.count })
    if (isShown) for (const update of past.updates(cwd)) await sendUpdate(this.#editor, session, update)
    return { modes: modeState(services.modes, mode) }
  }

  async setMode({ sessionId, modeId }: SetSessionModeRequest): Promise<object> {
    const session = this.#session(sessionId)
    const { modes } = this.#editor.services
    if (!modes.has(modeId)) throw paramInvalid('modeId', `must be one of ${modes.names().join(', ')}`)
    session.mode = modeId
    await keepSession(this.#editor, session)
    await sendUpdate(this.#editor, session, { sessionUpdate: 'current_mode_update', currentModeId: modeId })
    return {}
  }

  async prompt({ sessionId, prompt }: PromptRequest, signal: AbortSignal): Promise<PromptResponse> {
    const session = this.#session(sessionId)
    if (session.turn) throw promptRunning(sessionId)
    const message = messageOf(prompt)
    if (session.title === '') session.title = oneLine(message, MAX_TITLE)
    const turn = new PromptTurn(this.#editor, session, message)
    session.turn = turn
    const onAbort = () => turn.cancel()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await turn.response()
    } finally {
      signal.removeEventListener('abort', onAbort)
      if (session.turn === turn) session.turn = undefined
    }
  }

  /** Cancels the running prompt, if any. */
  cancel(sessionId: string): void {
    this.#open.get(sessionId)?.turn?.cancel()
  }

  async list({ cwd, cursor }: ListSessionsRequest): Promise<ListSessionsResponse> {
    const { records, own } = this.#editor
    try {
      const page = await records.list(definedOf({ cwd: cwd ?? undefined, cursor: cursor ?? undefined }), own)
      const sessions = page.records.map(({ id, title, updated, ...record }) => ({
        sessionId: id,
        cwd: record.cwd,
        title,
        updatedAt: updated,
      }))
      return { sessions, ...(page.next === undefined ? {} : { nextCursor: page.next }) }
    } catch (error) {
      throw codeOf(error) === 'STORE_INVALID' ? paramInvalid('cursor', 'is invalid') : error
    }
  }

  /** Ends the prompt and the commands of a session. It can be loaded again. */
  async close(sessionId: string): Promise<object> {
    const session = this.#session(sessionId)
    session.turn?.cancel()
    this.#open.delete(sessionId)
    await this.#leave(session)
    return {}
  }

  /** Deletes a session with its conversation. */
  async delete(sessionId: string): Promise<object> {
    const { records, own, services } = this.#editor
    mustBeId(sessionId)
    const session = this.#open.get(sessionId)
    const turn = session?.turn
    if (session) await this.close(sessionId)
    await turn?.done
    const conversation = session?.conversationId ?? (await records.get(sessionId, own))?.conversation
    if (conversation === undefined && !session) throw sessionUnknown(sessionId)
    await records.delete(sessionId, own)
    if (conversation !== undefined)
      await services.conversations.delete(conversation, own).catch((error: unknown) => {
        if (codeOf(error) !== 'CONVERSATION_UNKNOWN') throw requestErrorOf(error, sessionId)
      })
    return {}
  }

  /** Aborts all turns, waits until they are stored, and removes the tools of the editor. */
  async end(): Promise<void> {
    const { turns, services } = this.#editor
    const running = [...turns.values()]
    for (const turn of running) turn.cancel()
    const { log, lasting } = services
    try {
      await withTimeout(END_MS, () => Promise.all(running.map(({ done }) => done)), lasting)
    } catch (err) {
      log.warn({ err, turns: running.length }, 'turns did not end after the editor disconnected')
    }
    this.#removeTools()
    // the process of a local server ends with its session
    await Promise.all([...this.#open.values()].map(session => leaveServers(this.#editor, session)))
  }

  /** Ends the commands and the MCP servers of a session. */
  async #leave(session: Session): Promise<void> {
    const { client } = this.#editor
    const cancellationSignal = AbortSignal.timeout(END_MS)
    const options = { cancellationSignal, stopWaitingOnCancel: true }
    const released = [...session.terminals].map(terminalId =>
      client.request('terminal/release', { sessionId: session.id, terminalId }, options).catch(() => {})
    )
    await Promise.all([...released, leaveServers(this.#editor, session)])
  }

  #removeTools(): void {
    for (const undo of this.#undo.splice(0)) undo()
  }

  #session(id: string): Session {
    const session = this.#open.get(id)
    if (!session) throw sessionUnknown(id)
    return session
  }

  #add({ mcpServers, ...parts }: Pick<Session, 'id' | 'cwd' | 'roots' | 'mode'> & { mcpServers: readonly McpServer[] }): Session {
    if (!this.#open.has(parts.id) && this.#open.size >= MAX_SESSIONS) throw tooManySessions(MAX_SESSIONS)
    const session: Session = {
      ...parts,
      conversationId: undefined,
      isKept: false,
      title: '',
      turns: 0,
      allowed: new Set(),
      terminals: new Set(),
      turn: undefined,
      clients: new Set(),
      serverTools: new Map(),
      ready: Promise.resolve(),
      notice: undefined,
    }
    this.#open.set(session.id, session)
    if (mcpServers.length > 0 && this.#editor.services.config.mcp_servers)
      session.ready = connectServers(this.#editor, session, mcpServers)
    return session
  }

  async #firstMode(): Promise<string> {
    const { services, own } = this.#editor
    const { config, selection } = services
    if (config.mode !== undefined) return config.mode
    if (config.profile === undefined) return selection.mode(own)
    const { profiles } = await selection.profiles(own)
    return profiles.find(({ name }) => name === config.profile)?.mode ?? selection.mode(own)
  }

  /** The past turns of a conversation. Throws that the session is unknown. */
  async #past(sessionId: string, conversationId: string): Promise<Past> {
    const { services, records, own } = this.#editor
    const { conversations, tools } = services
    try {
      const turns = await storedTurns(conversations, conversationId, own)
      if (turns) return { count: turns.length, updates: cwd => replayOf(turns, tools, cwd) }
      const shown: Conversation = await conversations.get(conversationId, own)
      return { count: shown.messages.length, updates: () => replayMessages(shown) }
    } catch (error) {
      if (codeOf(error) === 'CONVERSATION_UNKNOWN') await records.delete(sessionId, own)
      throw requestErrorOf(error, sessionId)
    }
  }

  /** The user can switch to a stricter mode while a turn runs: its next tool calls need the consent of both modes. */
  #denied({ mode, effects }: ToolCall, { requestId }: CallContext): ToolVerdict | undefined {
    const session = this.#editor.turns.get(requestId)?.session
    if (!session || session.mode === mode) return undefined
    const now = this.#editor.services.modes.get(session.mode)
    if (now && allows(now, effects)) return undefined
    return { verdict: 'deny', reason: `the user has switched to the mode ${session.mode}, which does not allow it.` }
  }
}

/** The store has no records under other ids. */
function mustBeId(sessionId: string): void {
  if (!/^[\w-]{1,128}$/.test(sessionId)) throw sessionUnknown(sessionId)
}

/** The past turns of a session: their number, and the updates that show them. */
interface Past {
  readonly count: number
  readonly updates: (cwd: string) => Iterable<SessionUpdate>
}

/** Reads the turns with their tool calls. A conversation that is full, or busy in another process, cannot be read so. */
async function storedTurns(
  conversations: Editor['services']['conversations'],
  conversationId: string,
  ctx: CallContext
): Promise<readonly (readonly StoredMessage[])[] | undefined> {
  try {
    const { ticket, turns } = await conversations.begin({ conversationId, waitMs: 0, history: HISTORY }, ctx)
    await conversations.end(ticket, ctx)
    return turns
  } catch (error) {
    if (['CONVERSATION_BUSY', 'CONVERSATION_FULL'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}

/**
 * The message of a prompt. Links and resources stand as links in the text; the content of embedded resources follows at the end.
 * Throws invalid params for images and audio, which chat does not take.
 */
export function messageOf(prompt: readonly ContentBlock[]): string {
  const parts = prompt.map(partOf)
  const text = parts.map(part => part.text).join('')
  return [text, ...parts.flatMap(part => part.context ?? [])].join('\n\n')
}

/** The text of a block, and what follows at the end of the message. */
interface MessagePart {
  readonly text: string
  readonly context?: string
}

function partOf(block: ContentBlock, at: number): MessagePart {
  if (block.type === 'text') return { text: block.text }
  if (block.type === 'resource_link') return { text: linkOf(block.uri, block.title ?? block.name) }
  if (block.type === 'resource') {
    const { resource } = block
    const text = linkOf(resource.uri)
    if ('text' in resource) return { text, context: `Content of ${resource.uri}:\n${fenced(resource.text)}` }
    return { text, context: `The content of ${resource.uri} (${resource.mimeType ?? 'binary'}) is not text and is left out.` }
  }
  throw paramInvalid(`prompt[${at}]`, `is of type ${block.type}, which svc does not accept: see promptCapabilities`)
}

const linkOf = (uri: string, name?: string) => {
  const shown = name ?? decodedName(uri)
  return shown === uri ? uri : `[${shown}](${uri})`
}

/** The last part of a URI. */
function decodedName(uri: string): string {
  const last = uri.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(last) || uri
  } catch {
    return last || uri
  }
}

/** Text in a fence that it cannot close. */
function fenced(text: string): string {
  let longest = 2
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${text.endsWith('\n') ? text : `${text}\n`}${fence}`
}

/** The updates that show past turns again: messages of the user and of the agent, and tool calls with their results. */
function* replayOf(turns: readonly (readonly StoredMessage[])[], tools: SlotView<Tool>, cwd: string): Generator<SessionUpdate> {
  for (const [at, turn] of turns.entries()) {
    const results = new Map(
      turn.flatMap(({ parts }) => parts.flatMap(part => (part.type === 'tool_result' ? [[part.id, part]] : [])))
    )
    for (const { role, parts } of turn)
      for (const part of parts) {
        if (part.type === 'text' && part.text !== '') {
          if (role === 'user' || role === 'assistant') yield chunk(role, part.text)
        } else if (part.type === 'tool_call') {
          const view = viewOf(part.tool, tools.get(part.tool), part.arguments, cwd)
          yield { sessionUpdate: 'tool_call', toolCallId: `${at + 1}/${part.id}`, ...view, ...outcomeOf(results.get(part.id)) }
        }
      }
  }
}

/** The same for a conversation of which only the messages can be read. */
function* replayMessages({ messages }: Pick<Conversation, 'messages'>): Generator<SessionUpdate> {
  for (const { role, content } of messages) if (content !== '') yield chunk(role, content)
}

const chunk = (role: 'user' | 'assistant', text: string): SessionUpdate => ({
  sessionUpdate: role === 'user' ? 'user_message_chunk' : 'agent_message_chunk',
  content: { type: 'text', text },
})

/** A call without a result belongs to a turn that was cancelled. */
function outcomeOf(result: ToolResultPart | undefined) {
  if (!result) return { status: 'failed' as const }
  return { status: result.isError ? ('failed' as const) : ('completed' as const), ...resultView(contentText(result.content)) }
}
