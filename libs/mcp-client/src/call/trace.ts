/** The trace that a call belongs to: W3C `traceparent` and `tracestate`. */
export interface Traced {
  readonly trace?: string
  readonly traceState?: string
}

/** Under the keys of SEP-414, which are the names of the headers as well. */
export interface TraceWords {
  readonly [key: string]: string
}

const TRACE = /^[\da-f-]{55,128}$/
const STATE = /^[\x20-\x7e]{1,512}$/

/** What a server is told of the trace; `undefined` where there is none, or what is none: it would spoil a header. */
export function traceWords({ trace, traceState }: Traced): TraceWords | undefined {
  if (trace === undefined || !TRACE.test(trace)) return undefined
  return traceState !== undefined && STATE.test(traceState)
    ? { traceparent: trace, tracestate: traceState }
    : { traceparent: trace }
}
