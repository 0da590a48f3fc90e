import type { HookCallers, Log, SlotView, CallContext } from '@svc/core'
import type { ChatHooks, Conversations, Mode, ModelAlias, Provider, Selection, Tool } from '@svc/core/contracts'
import type { Clock } from './clock.ts'
import type { ProviderCounts } from './provider-counts.ts'
import type { Questions } from './questions.ts'
import type { ChatConfig } from './settings.ts'
import type { createToolLists } from './tool-list.ts'

/** What chat stands on. */
export interface ChatParts {
  readonly config: ChatConfig
  readonly hooks: HookCallers<ChatHooks>
  readonly conversations: Conversations
  readonly selection: Selection
  readonly providers: SlotView<Provider>
  readonly tools: SlotView<Tool>
  readonly modes: SlotView<Mode>
  readonly aliases: SlotView<ModelAlias>
  readonly questions: Pick<Questions, 'ask' | 'answer'>
  readonly counts: Pick<ProviderCounts, 'asked'>
  readonly log: Log
  /** For what must end although the caller left. */
  readonly lasting: CallContext
}

/** All that a turn reaches for: what chat stands on, and what its turns share. */
export interface ChatRoom extends ChatParts {
  readonly clock: Clock
  readonly toolsFor: ReturnType<typeof createToolLists>
}
