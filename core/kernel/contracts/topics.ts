import { defineTopic } from '@svc/core'
import type { ModelFailureKind } from './provider.ts'
import type { Json } from './store.ts'

// The types of events that svc publishes; those of MCP and of runs are in their contracts. Events contain ids, names, numbers and
// codes, never content: no messages, arguments, results or secrets.

/** A turn of a chat. Members are in snake_case, because events are sent as they are. */
export interface TurnEventData {
  /** A unique id of the turn. */
  readonly turn: string
  /** Empty for a turn that is not kept. */
  readonly conversation_id: string
  readonly provider: string
  readonly model: string
}
export interface TurnEndData extends TurnEventData {
  readonly duration_ms: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly tool_calls: number
}
/** A turn starts: its request is valid, and the conversation is free. */
export const TurnStarted = defineTopic<TurnEventData>('CHAT', 'turn_started')
export const TurnCompleted = defineTopic<TurnEndData>('CHAT', 'turn_completed')
/** The turn ended with an error. */
export const TurnFailed = defineTopic<TurnEndData & { readonly error_code: string }>('CHAT', 'turn_failed')
/** The client left, or the server stopped, before the end of the turn. */
export const TurnCancelled = defineTopic<TurnEndData>('CHAT', 'turn_cancelled')

export interface QuestionEventData {
  /** Empty for a call of a tool outside of a turn. */
  readonly conversation_id: string
  readonly tool: string
  readonly call_id: string
}
/** A tool of a turn, or a call of a tool, asks a person. */
export const QuestionAsked = defineTopic<QuestionEventData>('CHAT', 'question_asked')
/** The question is answered, or its time is over. */
export const QuestionClosed = defineTopic<QuestionEventData>('CHAT', 'question_closed')

/** A call of a tool in a turn. */
export interface ToolEventData {
  readonly turn: string
  readonly conversation_id: string
  readonly tool: string
  readonly call_id: string
  readonly duration_ms: number
}
export const ToolCompleted = defineTopic<ToolEventData>('TOOL', 'tool_completed')
/** A tool failed, or the call was refused. The event does not contain its message, which is content. */
export const ToolFailed = defineTopic<ToolEventData>('TOOL', 'tool_failed')

/** A call of a model. */
export interface ModelEventData {
  readonly turn: string
  readonly provider: string
  readonly model: string
  /** `embed`: a request for embeddings. */
  readonly kind: 'chat' | 'embed'
  /** The step of the turn, from 1. */
  readonly step: number
  /** The attempt at this model in this step, from 1. */
  readonly attempt: number
}
export interface ModelEndData extends ModelEventData {
  readonly duration_ms: number
  readonly input_tokens: number
  readonly output_tokens: number
}
export const ModelCompleted = defineTopic<ModelEndData>('MODEL', 'model_completed')
/** The caller stopped the call. */
export const ModelCancelled = defineTopic<ModelEndData>('MODEL', 'model_cancelled')
/** An attempt failed. `model_retried` or `model_fallback` follows if there is another. */
export const ModelAttemptFailed = defineTopic<ModelEndData & { readonly failure: ModelFailureKind }>('MODEL', 'model_failed')
/** The same model is called again after `wait_ms`. */
export const ModelRetried = defineTopic<ModelEventData & { readonly wait_ms: number }>('MODEL', 'model_retried')
export interface ModelFallbackData extends ModelEventData {
  readonly wait_ms: number
  readonly to_provider: string
  readonly to_model: string
}
/** Another model is called, `to_provider` and `to_model`. */
export const ModelFallback = defineTopic<ModelFallbackData>('MODEL', 'model_fallback')

/** The circuit breaker of a model, in one worker: each has its own. */
export interface BreakerEventData {
  readonly provider: string
  readonly model: string
}
/** The breaker opens: the worker does not call the model. */
export const ProviderBreakerOpened = defineTopic<BreakerEventData>('PROVIDER', 'provider_breaker_opened')
/** A call succeeded, and the breaker closes. */
export const ProviderBreakerClosed = defineTopic<BreakerEventData>('PROVIDER', 'provider_breaker_closed')

/** A background job. */
export interface JobEventData {
  readonly job: string
  readonly kind: string
  /** The id of the principal that added it. */
  readonly owner: string
  /** Number of attempts so far. */
  readonly attempt: number
}
export interface JobEndData extends JobEventData {
  readonly duration_ms: number
}
export const JobStarted = defineTopic<JobEventData>('JOB', 'job_started')
export const JobCompleted = defineTopic<JobEndData>('JOB', 'job_completed')
/** An attempt failed, and the job is tried again. */
export const JobRetried = defineTopic<JobEndData>('JOB', 'job_retried')
/** All attempts failed: the job is a dead letter. */
export const JobFailed = defineTopic<JobEndData>('JOB', 'job_failed')
export const JobCancelled = defineTopic<JobEndData>('JOB', 'job_cancelled')

/** An isolated plugin. */
export interface PluginEventData {
  readonly plugin: string
  readonly instance: string | null
}
/** An isolated plugin exits too often, so no worker starts it again until the next reload. */
export const PluginQuarantined = defineTopic<PluginEventData>('PLUGIN', 'plugin_quarantined')

/** A change of the installed plugins that a server has loaded. Its workers publish it once, also for a change by a command. */
export interface PluginChangeData {
  readonly plugin: string
  readonly version: string
  /** The version before an update; otherwise null. */
  readonly from_version: string | null
}
export const PluginInstalled = defineTopic<PluginChangeData>('PLUGIN', 'plugin_installed')
export const PluginUpdated = defineTopic<PluginChangeData>('PLUGIN', 'plugin_updated')
export const PluginRemoved = defineTopic<PluginChangeData>('PLUGIN', 'plugin_removed')
export const PluginEnabled = defineTopic<PluginChangeData>('PLUGIN', 'plugin_enabled')
export const PluginDisabled = defineTopic<PluginChangeData>('PLUGIN', 'plugin_disabled')
/** An optional plugin failed to start, and the server runs without it. */
export const PluginFailed = defineTopic<PluginEventData & { readonly error_code: string }>('PLUGIN', 'plugin_failed')

/** The workers of a reload serve. `reason` is the one in the log. */
export const Reloaded = defineTopic<{ readonly reason: string }>('SERVER', 'reloaded')

/**
 * A change of the state of the server, by a person or a program. Its type says what was done, such as `webhook_added`. The event
 * names the principal. `publishChange` of `@svc/plugin-kit` makes these events, and logs them.
 */
export interface ChangeEventData {
  /** What changed: `webhooks/<id>`, `tokens/<id>`, `selection`. */
  readonly subject: string
  /** The members that differ, before and after. Null: there was nothing before, or there is nothing after. Values of secrets are `[secret]`. */
  readonly before: { readonly [member: string]: Json | undefined } | null
  readonly after: { readonly [member: string]: Json | undefined } | null
}
/** The profile, model or mode of the server was switched. */
export const ConfigChanged = defineTopic<ChangeEventData>('AUDIT', 'config_changed')
export const TokenCreated = defineTopic<ChangeEventData>('AUDIT', 'token_created')
export const TokenRevoked = defineTopic<ChangeEventData>('AUDIT', 'token_revoked')
