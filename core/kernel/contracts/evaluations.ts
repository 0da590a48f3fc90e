import { type CallContext, defineService, type JsonSchema } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { JobState } from './jobs.ts'
import type { Json } from './store.ts'

// Members of these types are as in files of cases and in the HTTP API, so that each has one form.

/** What answers, grades or embeds. Without a member: the current selection of the server. */
export interface EvaluationModel {
  readonly profile?: string
  readonly provider?: string
  readonly model?: string
}

/** The recorded result of a tool call. */
export interface EvaluationToolRecord {
  readonly tool: string
  /** The arguments that a call must have. Absent: the record answers any call of the tool. */
  readonly arguments?: { readonly [name: string]: Json | undefined }
  /** The result; text, or JSON that the model gets as text. */
  readonly result?: Json
  /** The tool fails with this text. */
  readonly error?: string
}

/** A check has one member. */
export interface EvaluationCheck {
  /** The reply is this text, apart from white space at its ends. */
  readonly exact?: string
  /** The reply contains this text, or all of these. */
  readonly contains?: string | readonly string[]
  /** The reply contains none of these. */
  readonly not_contains?: string | readonly string[]
  /** The reply matches a regular expression, which is checked in linear time. */
  readonly regex?: string
  /** The reply is JSON that matches a JSON Schema. */
  readonly schema?: JsonSchema
  /** The cosine similarity of the embeddings of the reply and of `to`. Default threshold: 0.8. */
  readonly similarity?: { readonly to: string; readonly threshold?: number }
  /** A model grades the reply by a rubric with a score from 0 to 1. Default threshold: 0.5. */
  readonly judge?: EvaluationModel & { readonly rubric: string; readonly threshold?: number }
  /** Maximum cost of the turn, in the currency of the prices. */
  readonly cost?: number
  /** Maximum milliseconds of the turn. */
  readonly latency?: number
  /** Tools that the turn has to call, and must not call. */
  readonly tools?: { readonly called?: readonly string[]; readonly not_called?: readonly string[] }
}

/** One input with its checks. It has either `message` or `messages`. */
export interface EvaluationCase extends EvaluationModel {
  readonly name: string
  readonly message?: string
  readonly messages?: readonly { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }[]
  /** Images and files beside the message, as in the body of a chat request. */
  readonly parts?: readonly {
    readonly type: 'image' | 'file'
    readonly media_type: string
    readonly data: string
    readonly name?: string
  }[]
  readonly system?: string
  readonly response_schema?: JsonSchema
  readonly temperature?: number
  readonly max_tokens?: number
  /** Tools that the model can call. Absent: those of the profile. */
  readonly tools?: readonly string[]
  /** Answers all tool calls: no tool runs. A call that is not in the record fails. */
  readonly record?: readonly EvaluationToolRecord[]
  /** How often the case runs. Default: `repeat` of the request, else 1. */
  readonly repeat?: number
  readonly checks?: readonly EvaluationCheck[]
}

/** Stored turns to run again. Their tool calls are answered from the conversation: no tool runs. */
export interface EvaluationReplay {
  /** ISO 8601: turns stored from this time on. */
  readonly since: string
  /** ISO 8601: turns stored before this time. Default: the start of the evaluation. */
  readonly until?: string
  /** Only turns of this conversation. */
  readonly conversation_id?: string
  /** Maximum number of turns, the newest. Default: 20. */
  readonly limit?: number
  /** Compares by similarity with this threshold. Without it and without `judge`, the reply must be the same text. */
  readonly similarity?: number
  /** A model grades whether the reply has the same meaning as the stored one. */
  readonly judge?: boolean
}

/** Either `cases` or `replay`. */
export interface EvaluationRequest {
  readonly cases?: readonly EvaluationCase[]
  readonly replay?: EvaluationReplay
  /** One or two. Default: the current selection. */
  readonly targets?: readonly EvaluationModel[]
  /** The model of `judge` checks that name none. */
  readonly judge?: EvaluationModel
  /** The model of `similarity` checks. */
  readonly embedding?: EvaluationModel
  readonly repeat?: number
  /** Maximum turns at the same time. Default: 4. */
  readonly concurrency?: number
}

export interface EvaluationTokens {
  readonly input: number
  readonly output: number
}

export interface EvaluationCheckResult {
  /** The member of the check, such as `contains`. */
  readonly check: string
  readonly passed: boolean
  /** Similarity or score of the judge; for `cost` and `latency` the measured value. */
  readonly score?: number
  /** Why it did not pass, or the reason of the judge. */
  readonly reason?: string
  /** The check could not run, such as a failed model call. */
  readonly error?: boolean
  /** Tokens and cost of the judge or of the embeddings. Absent for other checks; the cost also without a price of the model. */
  readonly tokens?: EvaluationTokens
  readonly cost?: number
}

/** One turn of a case. */
export interface EvaluationResult {
  readonly case: string
  readonly target: string
  /** From 1. */
  readonly repeat: number
  /** `error`: the turn or a check could not run. */
  readonly status: 'passed' | 'failed' | 'error'
  /** The reply; long replies are cut. */
  readonly reply: string
  readonly checks: readonly EvaluationCheckResult[]
  readonly error?: PublicError
  readonly provider?: string
  readonly model?: string
  readonly tokens: EvaluationTokens
  /** Absent without a price of the model. */
  readonly cost?: number
  /** Absent for a stored turn. */
  readonly duration_ms?: number
  /** The called tools, in order. */
  readonly tools: readonly string[]
  /** Tool calls that were not in the record. */
  readonly unrecorded: number
}

/** The results of a target, of all cases or of one. */
export interface EvaluationTotals {
  readonly target: string
  readonly samples: number
  readonly passed: number
  readonly failed: number
  readonly errors: number
  /** `passed` / `samples`. */
  readonly pass_rate: number
  readonly tokens: EvaluationTokens
  readonly cost?: number
  /** What the checks used: judges and embeddings. Absent if no check calls a model. */
  readonly check_tokens?: EvaluationTokens
  readonly check_cost?: number
  readonly latency_ms?: { readonly p50: number; readonly p95: number }
  readonly unrecorded: number
}

/** One check of a case in comparison. `better` is a target; absent if neither is. */
export interface EvaluationComparison {
  readonly check: string
  readonly targets: readonly { readonly target: string; readonly pass_rate: number; readonly score?: number }[]
  readonly better?: string
}

export interface EvaluationCaseReport {
  readonly case: string
  readonly targets: readonly EvaluationTotals[]
  readonly checks: readonly EvaluationComparison[]
  readonly better?: string
}

export interface EvaluationReport {
  /** False if the evaluation was cancelled, or still runs. */
  readonly complete: boolean
  readonly done: number
  readonly total: number
  readonly targets: readonly EvaluationTotals[]
  /** For two targets: number of cases in which each is better, and in which neither is. */
  readonly better?: { readonly cases: readonly { readonly target: string; readonly cases: number }[]; readonly ties: number }
  readonly cases: readonly EvaluationCaseReport[]
  readonly results: readonly EvaluationResult[]
}

/** `start` first, `end` last. */
export type EvaluationEvent =
  | { readonly type: 'start'; readonly cases: readonly string[]; readonly targets: readonly string[]; readonly total: number }
  | { readonly type: 'result'; readonly result: EvaluationResult }
  | { readonly type: 'end'; readonly report: EvaluationReport }

/** An evaluation in the background. */
export interface Evaluation {
  readonly id: string
  readonly state: JobState
  readonly done: number
  readonly total: number
  readonly error?: PublicError
  /** The results so far. */
  readonly report?: EvaluationReport
}

/**
 * Runs turns of cases, or stored turns again, and checks their replies. Errors: INVALID_VALUE (`details: {field, reason,
 * problems}`), UNAVAILABLE (`start` without the service `Jobs`), CONVERSATION_UNKNOWN. A turn or check that fails is a result.
 */
export interface Evaluations {
  /** Runs in this process. */
  run(request: EvaluationRequest, ctx: CallContext): AsyncIterable<EvaluationEvent>
  /** Runs in a background job, which continues after the death of its worker. */
  start(request: EvaluationRequest, ctx: CallContext): Promise<Evaluation>
  /** Waits up to `waitMs` (at most 30 s) for the end. Only for the principal that started it; it does not exist for others. */
  get(id: string, waitMs: number, ctx: CallContext): Promise<Evaluation>
  /** Stops it. The results so far stay. */
  cancel(id: string, ctx: CallContext): Promise<Evaluation>
}

export const Evaluations = defineService<Evaluations>('evaluations', {
  api: 1,
  methods: { run: 'stream', start: 'call', get: 'call', cancel: 'call' },
})
