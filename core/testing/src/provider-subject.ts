import type { ModelFailureKind, ModelRequest, Provider, ToolCallPart, Usage } from '@svc/core/contracts'
import type { caseMaker, KitSubject } from './kit-case.ts'

/** A provider to be proved; it may live in another process. */
export interface ProviderSubject extends KitSubject {
  readonly provider: Provider
  /**
   * How many calls an upstream is serving for it now: must fall to 0 whenever nobody waits for them any more. Without it nothing shows that an abort reaches
   * the upstream, and the case of that skips itself.
   */
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
  /** The same kind of calls, whose names and arguments come in pieces that are mixed with each other. */
  readonly pieces?: { readonly request: ModelRequest; readonly calls: readonly Pick<ToolCallPart, 'tool' | 'arguments'>[] }
  /** A call whose arguments are no JSON object: it comes with `invalid`. */
  readonly badArguments?: ModelRequest
  /** Cut by its `maxTokens`. */
  readonly length?: ModelRequest
  /** Answered with just this text, split wherever it hurts. */
  readonly unicode?: { readonly request: ModelRequest; readonly text: string }
  /** Answered with just this usage. */
  readonly usage?: { readonly request: ModelRequest; readonly usage: Usage }
  /** Answered with reasoning of just this text, before the text. */
  readonly reasoning?: { readonly request: ModelRequest; readonly text: string }
  /** Cut by the upstream's filter, which is an end and no failure. */
  readonly filtered?: ModelRequest
  readonly failures?: { readonly [K in ModelFailureKind]?: ModelRequest }
  /** Fails so after its first piece. */
  readonly midway?: { readonly request: ModelRequest; readonly kind: ModelFailureKind }
  /** Says when a retry makes sense: this many milliseconds. */
  readonly retryAfter?: { readonly request: ModelRequest; readonly ms: number }
  /** The connection breaks after the first piece. */
  readonly cut?: ModelRequest
  /** The answer ends as if it were whole, but it is not. */
  readonly endsEarly?: ModelRequest
  /** After the first piece comes something that cannot be read. */
  readonly malformed?: ModelRequest
  /** After the first piece nothing comes any more. */
  readonly stalled?: ModelRequest
}

export interface ProviderKitOptions {
  /** Streams at once; default 50. */
  readonly concurrent?: number
  /** Keys and the like, which no error may tell. */
  readonly secrets?: readonly string[]
}

/** Makes the cases of the provider kit. */
export type Make = ReturnType<typeof caseMaker<ProviderSubject>>
