import { isAbsolute } from 'node:path'
import type {
  AgentContext,
  ClientCapabilities,
  SessionModeState,
  SessionUpdate,
  ToolCallContent,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import { codeOf, type CallContext, type Log, type SlotView } from '@svc/core'
import type {
  Chat,
  Conversations,
  Json,
  Mode,
  ProtectedPaths,
  Provider,
  Selection,
  Store,
  Tool,
  ToolCall,
  ToolVerdict,
} from '@svc/core/contracts'
import type { McpClient } from '@svc/plugin-mcp-client/client'
import { openRoots, type Roots } from '@svc/safe-fs'
import { paramInvalid } from './errors.ts'
import type { SessionRecords } from './session-records.ts'
import type { AcpConfig } from './settings.ts'

/** The services and settings of the plugin. */
export interface AcpServices {
  readonly chat: Chat
  readonly conversations: Conversations
  readonly selection: Selection
  readonly store: Store
  readonly tools: SlotView<Tool>
  readonly modes: SlotView<Mode>
  readonly providers: SlotView<Provider>
  readonly protectedPaths: SlotView<ProtectedPaths>
  readonly config: AcpConfig
  readonly log: Log
  readonly version: string
  /** For work that must finish after the editor has gone. */
  readonly lasting: CallContext
  /** Additions to the host, while an editor is connected. They return their removal. */
  readonly extend: {
    readonly addTool: (name: string, tool: Tool) => () => void
    readonly onToolCall: (tap: (call: ToolCall, ctx: CallContext) => ToolVerdict | undefined) => () => void
  }
}

/** A connected editor, and what its sessions share. */
export interface Editor {
  readonly client: Pick<AgentContext, 'request' | 'notify'>
  capabilities: ClientCapabilities
  readonly services: AcpServices
  readonly records: SessionRecords
  /** The context of calls for this editor, which outlives the connection. */
  readonly own: CallContext
  /** Running turns by their request id, which their tool calls carry. */
  readonly turns: Map<string, RunningTurn>
  /** Tools of MCP servers of the sessions. */
  readonly serverTools: Map<string, SharedTool>
  /** What a call of a tool of the editor would change, for the question to the user. */
  readonly preview: (turn: RunningTurn, tool: string, args: Arguments, signal: AbortSignal) => Promise<ToolCallContent[]>
}

/** A tool in the slot, and the sessions whose servers have it. */
interface SharedTool {
  readonly sessions: Set<Session>
  readonly remove: () => void
}

export type Arguments = { readonly [name: string]: Json | undefined }

/** A turn of a session, for its tools and for the end of the session. */
export interface RunningTurn {
  readonly editor: Editor
  readonly session: Session
  /** Settled when the turn of chat has ended. */
  readonly done: Promise<unknown>
  cancel(): void
  /** Finds the shown call of a tool of the editor that starts now. */
  claim(tool: string, args: Arguments): ShownCall | undefined
  /** Shows content of a running call, which its result does not replace. */
  showContent(call: ShownCall | undefined, content: ToolCallContent[], more?: Partial<ToolCallUpdate>): Promise<void>
}

/** A tool call that the editor shows. */
interface ShownCall {
  /** Its id for the editor. */
  readonly toolCallId: string
}

/** An open session. */
export interface Session {
  readonly id: string
  readonly cwd: string
  readonly roots: Roots
  mode: string
  /** Its stored conversation, from the first turn on. */
  conversationId: string | undefined
  /** Whether the store has the conversation. A turn without output is not stored. */
  isKept: boolean
  title: string
  /** Number of turns, replayed ones included: ids of tool calls are unique in one turn only. */
  turns: number
  /** Tools that the user has allowed for the session. */
  readonly allowed: Set<string>
  /** Running commands in terminals of the editor. */
  readonly terminals: Set<string>
  turn: RunningTurn | undefined
  /** The MCP servers that the editor has named, and their tools by name. */
  readonly clients: Set<McpClient>
  readonly serverTools: Map<string, { readonly client: McpClient; readonly tool: string }>
  /** Settled when these servers have answered or failed. */
  ready: Promise<void>
  /** For the user, with the next prompt. */
  notice: string | undefined
}

/** Sends an update of a session. Resolves when it is written, so that a slow editor slows the turn. */
export const sendUpdate = ({ client }: Pick<Editor, 'client'>, { id }: Session, update: SessionUpdate) =>
  client.notify('session/update', { sessionId: id, update })

/** The modes of svc, and the mode of a session. */
export function modeState(modes: SlotView<Mode>, current: string): SessionModeState {
  const availableModes = [...modes.entries()].map(([id, { description }]) => ({ id, name: titled(id), description }))
  return { currentModeId: current, availableModes }
}

const titled = (id: string) => `${id.slice(0, 1).toUpperCase()}${id.slice(1)}`

/** Whether a mode allows a tool with these effects. */
export const allows = (mode: Mode, effects: Tool['effects']) => effects.every(effect => mode.effects.includes(effect))

/** Maximum folders of a session. */
const MAX_FOLDERS = 64

/** The folders in which the tools of the editor work. Throws invalid params. */
export async function foldersOf(cwd: string, more: readonly string[], protectedPaths: SlotView<ProtectedPaths>): Promise<Roots> {
  if (more.length >= MAX_FOLDERS) throw paramInvalid('additionalDirectories', `must have less than ${MAX_FOLDERS} folders`)
  const named = [['cwd', cwd] as const, ...more.map((path, at) => [`additionalDirectories[${at}]`, path] as const)]
  for (const [field, path] of named)
    if (!isAbsolute(path) || path.includes('\0')) throw paramInvalid(field, 'must be an absolute path')
  for (const [field, path] of named)
    await openRoots([path], field).catch((error: unknown) =>
      Promise.reject(codeOf(error) === 'CONFIG_INVALID' ? paramInvalid(field, 'is not an existing folder') : error)
    )
  return openRoots([cwd, ...more], 'cwd', { protectedPaths })
}
