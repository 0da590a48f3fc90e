import type { GuestFailure } from '../messages.ts'

/** An error of a guest, as the prelude serializes it. */
export interface ThrownError {
  readonly name: string
  readonly message: string
  /** The head of the stack. */
  readonly place: string
}

/** Ends a run from inside the thread. The guest cannot catch it. */
export class GuestStopped extends Error {
  readonly failure: GuestFailure
  constructor(kind: GuestFailure['kind'], message: string) {
    super(message)
    this.failure = { kind, message }
  }
}

const BLOCKED = 'SandboxBlocked'

/** The error that a guest gets for a use that is not allowed. */
export const blocked = (what: string): Error =>
  Object.assign(new Error(`${what} is not allowed in the sandbox`), { name: BLOCKED })

/** Messages of the engine when memory or stack is exhausted. */
const MEMORY =
  /^(\w+: stack overflow|InternalError: (out of memory|string too long)|RangeError: (invalid array buffer length|invalid string length|Maximum call stack size exceeded|out of memory))/

/** Globals of other engines that this one does not have. Code that uses one wants to leave the sandbox. */
const OUTSIDE = new Set(
  (
    'process require module exports Buffer global __dirname __filename fetch files std os Atomics WebAssembly Worker importScripts ' +
    'XMLHttpRequest WebSocket EventSource Deno Bun window document navigator localStorage'
  ).split(' ')
)
const UNDEFINED = /^ReferenceError: '?(\w+)'? is not defined$/

/** Classifies an error that a guest threw. */
export function failureOf({ name, message, place }: ThrownError, code: string): GuestFailure {
  const words = name === '' ? message : `${name}: ${message}`
  if (name === BLOCKED) return { kind: 'blocked', message }
  if (MEMORY.test(words)) return { kind: 'memory', message: words }
  const missing = UNDEFINED.exec(words)?.[1]
  if (missing !== undefined && OUTSIDE.has(missing))
    return { kind: 'blocked', message: `${missing} does not exist in the sandbox` }
  if (name === 'SyntaxError' && /(^|[;\n])\s*(import|export)\s*[\w{*"']/.test(code) && /^    at code\.js/m.test(place))
    return { kind: 'blocked', message: 'import and export are not allowed in the sandbox: write a script' }
  const line = /(?:code|plugin)\.js:(\d+)/.exec(place)?.[1]
  return { kind: 'failed', message: line === undefined ? words : `${words} (line ${line})` }
}
