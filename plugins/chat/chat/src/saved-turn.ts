import type { CallContext } from '@svc/core'
import type { Json, Selected, ToolCallPart, TurnRequest } from '@svc/core/contracts'
import { CallKeys, type ChatServices, formOf, type InterruptedStep, type Turn } from './turn.ts'
import type { TurnTools } from './tool-list.ts'
import type { TurnJournal } from './waiting-turns.ts'

/** Members of a turn that are stored as they are. */
const PLAIN = ['id', 'who', 'tried', 'dropped', 'made', 'steps', 'usage', 'toolsUsed', 'said', 'tokens', 'limitMs'] as const

type Plain = Pick<Turn, (typeof PLAIN)[number]>
const plainOf = (turn: Plain) => Object.fromEntries(PLAIN.map(name => [name, turn[name]])) as unknown as Plain

/** A turn as JSON: what another worker needs to continue it. It has no credential and no scope of its principal. */
export interface SavedTurn extends Plain {
  /** Without the text and the parts of the message, which are in `made`. */
  readonly asked: Omit<TurnRequest, 'message' | 'parts'>
  readonly hasParts: boolean
  readonly key?: string
  readonly conversationId: string
  /** False: the turn was creating the conversation. */
  readonly exists: boolean
  readonly profile: string
  readonly mode: string
  readonly added: readonly string[]
  readonly finish?: Turn['finish']
  readonly aside?: Turn['aside']
  readonly cost?: number
  readonly elapsedMs: number
  /** Milliseconds until the limit of the turn. The time without a worker does not count. */
  readonly leftMs: number
}

/** Whether a turn can be saved: one of a conversation, without tools that its caller runs. */
export const canBeSaved = ({ asked, open }: Turn): boolean =>
  open.conversationId !== '' && asked.messages === undefined && asked.clientTools === undefined

/** The turn as JSON, for `savedOf`. */
export const saveTurn = (turn: Turn): Json => savedFrom(turn) as unknown as Json
export const savedOf = (value: Json): SavedTurn => value as unknown as SavedTurn

function savedFrom(turn: Turn): SavedTurn {
  const { message: _text, parts, ...asked } = turn.asked
  const now = performance.now()
  return {
    ...plainOf(turn),
    asked,
    hasParts: parts !== undefined,
    ...(turn.keys ? { key: turn.keys.turn } : {}),
    conversationId: turn.open.conversationId,
    exists: turn.open.exists,
    profile: turn.selected.profile.name,
    mode: turn.selected.mode,
    added: [...turn.added],
    ...(turn.finish === undefined ? {} : { finish: turn.finish }),
    ...(turn.aside ? { aside: turn.aside } : {}),
    ...(turn.cost === undefined ? {} : { cost: turn.cost }),
    elapsedMs: now - turn.begun,
    leftMs: Math.max(0, turn.until - now),
  }
}

/** A saved turn with what this worker has for it. */
export interface PreparedTurn {
  readonly saved: SavedTurn
  readonly selected: Selected
  readonly list: TurnTools
  readonly form: Turn['form']
}

/** Selects the same model, profile, mode and tools again. Throws the errors of `Selection`, and INVALID_VALUE for tools that are gone. */
export async function prepareTurn(services: ChatServices, saved: SavedTurn, ctx: CallContext): Promise<PreparedTurn> {
  const { asked, who, profile, mode } = saved
  const selected = await services.selection.select({ ...who, profile, mode }, ctx)
  const list = services.toolsFor(asked.tools, selected.profile.tools, selected.mode)
  const form = asked.responseSchema === undefined ? undefined : await formOf(asked.responseSchema)
  return { saved, selected, list, form }
}

export interface RestoreOptions {
  readonly journal: TurnJournal
  readonly interrupted: InterruptedStep
  /** Called when the turn has its conversation. */
  readonly restored: () => void
}

/** Continues a saved turn. Waits for its conversation. Throws the errors of `Conversations.begin`. */
export async function restoreTurn(
  { conversations, config }: ChatServices,
  { saved, selected, list, form }: PreparedTurn,
  { journal, interrupted, restored }: RestoreOptions,
  ctx: CallContext
): Promise<Turn> {
  const { conversationId, asked, made, key } = saved
  const names = asked.newConversation && { newConversation: asked.newConversation }
  const begin = saved.exists ? { conversationId } : { conversationId, restored: true, ...names }
  const open = await conversations.begin({ ...begin, waitMs: config.queue_timeout_ms, history: config.history_turns }, ctx)
  restored()
  const [text, ...parts] = made[0]!.parts
  const now = performance.now()
  return {
    ...plainOf(saved),
    made: [...made],
    steps: [...saved.steps],
    usage: { ...saved.usage },
    cost: saved.cost,
    stop: undefined,
    toolsUsed: [...saved.toolsUsed],
    asked: {
      ...asked,
      message: text?.type === 'text' ? text.text : '',
      ...(saved.hasParts ? { parts: parts as NonNullable<TurnRequest['parts']> } : {}),
    },
    gathered: false,
    journal,
    interrupted,
    selected,
    list,
    added: new Set(saved.added),
    open,
    keys: key === undefined ? undefined : keysAfter(key, made.slice(0, -1)),
    form,
    prior: [],
    system: [],
    clientTools: new Set(),
    clientCalls: [],
    finish: saved.finish,
    aside: saved.aside,
    begun: now - saved.elapsedMs,
    until: now + saved.leftMs,
    data: undefined,
    handed: false,
    kept: false,
  }
}

/** The keys of calls after those in these messages. */
function keysAfter(key: string, messages: Turn['made']): CallKeys {
  const keys = new CallKeys(key)
  for (const call of messages.flatMap(callsIn)) keys.of(call)
  return keys
}

/** The tool calls of a message. */
export const callsIn = ({ parts }: { readonly parts: Turn['made'][number]['parts'] }): readonly ToolCallPart[] =>
  parts.filter(part => part.type === 'tool_call')
