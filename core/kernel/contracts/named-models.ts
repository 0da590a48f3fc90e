import { type CallContext, defineService } from '@svc/core'
import type { EmbedResult, ModelCallBegun, ModelCallEvent, ModelCallLimits, OpenRequest } from './model-calls.ts'
import type { EmbedRequest, ProviderFeatures, RequestField } from './provider.ts'

/** What answers under a name. `model` and `alias` are models; the others are agents, in which the tools of svc run. */
export type NamedModelKind = 'model' | 'alias' | 'profile' | 'team' | 'workflow'

/** A name under which clients can call a model or an agent. */
export interface NamedModel {
  /** `<provider>/<model>`, the name of an alias, or `profile:`, `team:` or `workflow:` with a name. */
  readonly id: string
  readonly kind: NamedModelKind
  /** The provider of a model; `svc` for an agent. */
  readonly owner: string
  readonly description?: string
  readonly context?: number
  readonly output?: number
  /** Absent for agents whose model is not fixed. */
  readonly features?: ProviderFeatures
}

/** A call under a name. The tools of the request are the client's: svc never runs them. */
export interface NamedCall {
  readonly name: string
  readonly request: OpenRequest
  /** As in `ModelCallOrder`. */
  readonly defaults?: readonly RequestField[]
  readonly limits?: ModelCallLimits
  /** As in `RunRequest`, for a team or workflow; models and profiles ignore it. 1 to 255 visible characters. */
  readonly idempotencyKey?: string
}

/**
 * Models and agents by the names that clients send. The name alone decides: `<provider>/<model>`, an alias, or an id that exactly
 * one provider has is a model, and the request goes to it unchanged; `profile:`, `team:` and `workflow:` (also `agent:` for
 * profiles) are agents. A prefix counts only if no provider has a model of the whole name.
 *
 * Errors: INVALID_VALUE (`field: model`) for an empty or ambiguous name, MODEL_NOT_FOUND, and those of `ModelCalls`, `Chat` and
 * `Workflows`. A name that the caller must not use is MODEL_NOT_FOUND.
 */
export interface NamedModels {
  /** All names that this caller can use: models, aliases, then agents. */
  list(ctx: CallContext): Promise<readonly NamedModel[]>
  find(name: string, ctx: CallContext): Promise<NamedModel>
  /**
   * The events of the answer. An agent calls its own tools in between, of which the stream has no events. Where it calls a tool of
   * the client, the answer ends with that call: send it with its result in the messages of the next request. svc keeps the steps
   * before it for an hour and inserts them then, for the same principal.
   */
  stream(call: NamedCall, ctx: CallContext): AsyncIterable<ModelCallEvent>
  embed(call: { readonly name: string; readonly request: Omit<EmbedRequest, 'model'> }, ctx: CallContext): Promise<EmbedResult>
  /**
   * The `start` of the answer if the named model, or the model of the profile, answers. Calls no model. Throws INVALID_VALUE for a
   * field that cannot be used, as `stream` does.
   */
  check(call: Pick<NamedCall, 'name' | 'request' | 'defaults'>, ctx: CallContext): Promise<ModelCallBegun>
  /** Number of input tokens of a request. For an agent, without its own prompt and tools. */
  countTokens(call: Pick<NamedCall, 'name' | 'request'>, ctx: CallContext): Promise<number>
}

export const NamedModels = defineService<NamedModels>('named_models', {
  api: 1,
  methods: { list: 'call', find: 'call', stream: 'stream', embed: 'call', check: 'call', countTokens: 'call' },
})
