import type { ModelFailureKind, Usage } from '@svc/core/contracts'

/** A tool call as a fake upstream makes it: the arguments as text, so that they may be no JSON. */
export interface WireCall {
  readonly id: string
  readonly name: string
  readonly json: string
}
export interface WireUsage {
  readonly input: number
  readonly output: number
  readonly cached: number
  readonly reasoning: number
}
type WireEnd = 'stop' | 'length' | 'tool_calls' | 'content_filter'
/** `end`: null where the model never said why it stopped. */
export interface WireAnswer {
  readonly text?: string | undefined
  readonly thoughts?: string
  /** Number of alternatives of the token that is the whole text. */
  readonly top?: number | undefined
  readonly calls?: readonly WireCall[]
  readonly end: WireEnd | null
  readonly usage: WireUsage
}
export interface Refusal {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** One real wire protocol, as far as its upstream speaks: each function gives the frames for what is said. */
export interface Wire {
  readonly path: string
  /** The answer where no stream was asked for. */
  whole(answer: WireAnswer): object
  begin(): string
  /** `top`: the text is one token with so many alternatives. */
  text(delta: string, top?: number): string
  /** What the model thinks, in pieces; absent where the wire has no thoughts. */
  thoughts?(pieces: readonly string[]): string
  /** The calls in pieces, as much in parallel as the wire allows. */
  calls(calls: readonly WireCall[]): string
  end(end: WireEnd, usage: WireUsage): string
  /** The usage that the packages make of `{ input: 5, output: 2, cached: 2, reasoning: 1 }`. */
  readonly usage: Usage
  /** An error inside the stream. */
  error(message: string): string
  /** The answer of each kind that this wire has. */
  refusals(echo: string): { readonly [K in ModelFailureKind]?: Refusal }
}

export const event = (data: unknown, name?: string) =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`

/** A token as both APIs of OpenAI tell its probability. */
export const probable = (token: string, top: number) => ({
  token,
  logprob: -0.5,
  top_logprobs: Array.from({ length: top }, (_, at) => ({ token: `${token}${at}`, logprob: -1 - at })),
})

/** A text in two halves. */
export const halves = (text: string): [string, string] => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)]
