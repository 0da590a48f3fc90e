import type { GuestFailure } from '../messages.ts'

/** What a guest threw, as the prelude tells it. */
export interface Told {
  readonly name: string
  readonly message: string
  /** The head of the stack. */
  readonly place: string
}

/** Ends a run from inside, whatever the guest does. */
export class Ended extends Error {
  readonly failure: GuestFailure
  constructor(kind: GuestFailure['kind'], message: string) {
    super(message)
    this.failure = { kind, message }
  }
}

const BLOCKED = 'SandboxBlocked'

/** An error that a guest meets where it reaches for what it may not have. */
export const blocked = (what: string): Error =>
  Object.assign(new Error(`${what} is not allowed in the sandbox`), { name: BLOCKED })

/** How the engine says that there is no more memory, of any kind. */
const MEMORY =
  /^(\w+: stack overflow|InternalError: (out of memory|string too long)|RangeError: (invalid array buffer length|invalid string length|Maximum call stack size exceeded|out of memory))/

/** What other engines have, and this one has not: who asks for it tries to get out. */
const OUTSIDE = new Set(
  (
    'process require module exports Buffer global __dirname __filename fetch files std os Atomics WebAssembly Worker importScripts ' +
    'XMLHttpRequest WebSocket EventSource Deno Bun window document navigator localStorage'
  ).split(' ')
)
const UNDEFINED = /^ReferenceError: '?(\w+)'? is not defined$/

/** What kind of failure it is that a guest threw. */
export function failureOf({ name, message, place }: Told, code: string): GuestFailure {
  const words = name === '' ? message : `${name}: ${message}`
  if (name === BLOCKED) return { kind: 'blocked', message }
  if (MEMORY.test(words)) return { kind: 'memory', message: words }
  const missing = UNDEFINED.exec(words)?.[1]
  if (missing !== undefined && OUTSIDE.has(missing)) return { kind: 'blocked', message: `${missing} is not there in the sandbox` }
  if (name === 'SyntaxError' && /(^|[;\n])\s*(import|export)\s*[\w{*"']/.test(code) && /^    at code\.js/m.test(place))
    return { kind: 'blocked', message: 'import and export are not allowed in the sandbox: write a script' }
  const line = /(?:code|plugin)\.js:(\d+)/.exec(place)?.[1]
  return { kind: 'failed', message: line === undefined ? words : `${words} (line ${line})` }
}
