import type { SessionUpdate } from '@agentclientprotocol/sdk'
import type { SlotView } from '@svc/core'
import type { Conversation, StoredMessage, Tool, ToolResultPart } from '@svc/core/contracts'
import { contentText } from '@svc/plugin-kit'
import { resultView, viewOf } from './tool-view.ts'

/** The updates that show past turns again: messages of the user and of the agent, and tool calls with their results. */
export function* replayOf(
  turns: readonly (readonly StoredMessage[])[],
  tools: SlotView<Tool>,
  cwd: string
): Generator<SessionUpdate> {
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
export function* replayMessages({ messages }: Pick<Conversation, 'messages'>): Generator<SessionUpdate> {
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
