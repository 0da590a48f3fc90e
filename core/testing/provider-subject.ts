import type { ModelFailureKind, ModelRequest, Provider, ToolCallPart } from '@svc/core/contracts'
import type { caseMaker, KitSubject } from './kit-case.ts'

/** A provider to be proved; it may live in another process. */
export interface ProviderSubject extends KitSubject {
  readonly provider: Provider
  /** How many calls an upstream is serving for it now: must fall to 0 whenever nobody waits for them any more. */
  connections?(): number | Promise<number>
}

/** Requests that make the provider behave in a certain way: directives, or a model name that a fake upstream knows. */
export interface ProviderRequests {
  /** Answered with text of two pieces at least, and `stop`. */
  readonly plain: ModelRequest
  /** Answered piece by piece, for longer than anybody reads. */
  readonly endless?: ModelRequest
  /** Not answered at all. */
  readonly silent?: ModelRequest
  /** Answered with these calls, in this order, and no text needed; `results` asks the next round. */
  readonly tools?: {
    readonly request: ModelRequest
    readonly calls: readonly Pick<ToolCallPart, 'tool' | 'arguments'>[]
    results?(calls: readonly ToolCallPart[]): ModelRequest
  }
  /** A call whose arguments are no JSON object: it comes with `invalid`. */
  readonly badArguments?: ModelRequest
  /** Cut by its `maxTokens`. */
  readonly length?: ModelRequest
  /** Answered with just this text, split wherever it hurts. */
  readonly unicode?: { readonly request: ModelRequest; readonly text: string }
  readonly failures?: { readonly [K in ModelFailureKind]?: ModelRequest }
  /** Fails so after its first piece. */
  readonly midway?: { readonly request: ModelRequest; readonly kind: ModelFailureKind }
}

export interface ProviderKitOptions {
  /** Streams at once; default 50. */
  readonly concurrent?: number
  /** Keys and the like, which no error may tell. */
  readonly secrets?: readonly string[]
}

/** Makes the cases of the provider kit. */
export type Make = ReturnType<typeof caseMaker<ProviderSubject>>
