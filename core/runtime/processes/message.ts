import type { MethodKind, Principal, CallContext } from '@svc/core'
import type { WireError } from './errors.ts'
import { findNonPlain } from './plain-data.ts'

/** Increases when the protocol changes. */
export const PROTOCOL = 1
/** Maximum number of unread items of a stream. */
export const WINDOW = 64

export const HELLO = 0
export const CALL = 1
export const ABORT = 2
export const CREDIT = 3
export const RETURN = 4
export const ANSWER = 5
export const ITEM = 6
export const FAIL = 7
export const SHAPE = 8

/** The part of a contract that both sides must agree on. */
export interface Shape {
  readonly name: string
  readonly api: number
  readonly methods: Readonly<Record<string, MethodKind>>
}
/** The part of a context that crosses. Its signal crosses as ABORT, or here when it has already aborted. */
export interface WireContext extends Omit<CallContext, 'signal'> {
  readonly aborted?: WireError
}

/**
 * The messages of the channel. The caller chooses the id. CALL to RETURN go from the caller, ANSWER to FAIL to it. ANSWER also
 * ends a stream.
 */
export type Message =
  | [typeof HELLO, protocol: number]
  | [typeof CALL, id: number, path: string, method: string, args: unknown[], ctx: WireContext]
  | [typeof ABORT, id: number, reason: WireError]
  | [typeof CREDIT, id: number, items: number]
  | [typeof RETURN, id: number]
  | [typeof ANSWER, id: number, value: unknown]
  | [typeof ITEM, id: number, item: unknown]
  | [typeof FAIL, id: number, error: WireError]
  | [typeof SHAPE, path: string, shape: Shape]

/** Copies only the defined members of a context, because the other side is untrusted. */
export function plainContext({ principal, requestId, ...more }: Omit<CallContext, 'signal'>): Omit<CallContext, 'signal'> {
  const { trace, traceState, deadline, idempotencyKey } = more
  const plain = { principal, requestId, ...(trace !== undefined && { trace }), ...(deadline !== undefined && { deadline }) }
  if (traceState === undefined && idempotencyKey === undefined) return plain
  return { ...plain, ...(traceState !== undefined && { traceState }), ...(idempotencyKey !== undefined && { idempotencyKey }) }
}

const isId = Number.isSafeInteger
const isText = (value: unknown) => typeof value === 'string'
const isObject = (value: unknown) => typeof value === 'object' && value !== null
const isPrincipal = ({ id, scopes }: Partial<Principal>) => isText(id) && Array.isArray(scopes) && scopes.every(isText)
const isAbsentOr = (is: (value: unknown) => boolean, value: unknown) => value === undefined || is(value)
const isContext = (value: unknown) => {
  const { principal, requestId, deadline, aborted, ...texts } = Object(value) as Partial<WireContext>
  const plain = [texts.trace, texts.traceState, texts.idempotencyKey].every(item => isAbsentOr(isText, item))
  return (
    isText(requestId) &&
    isPrincipal(Object(principal)) &&
    plain &&
    isAbsentOr(Number.isFinite, deadline) &&
    isAbsentOr(isObject, aborted)
  )
}
const isShape = (value: unknown) => {
  const { name, api, methods } = Object(value) as Partial<Shape>
  return isText(name) && isId(api) && isObject(methods)
}

const FORMS: Readonly<Record<number, readonly ((value: unknown) => boolean)[]>> = {
  [HELLO]: [isId],
  [CALL]: [isId, isText, isText, Array.isArray, isContext],
  [ABORT]: [isId, isObject],
  [CREDIT]: [isId, isId],
  [RETURN]: [isId],
  [ANSWER]: [isId],
  [ITEM]: [isId],
  [FAIL]: [isId, isObject],
  [SHAPE]: [isText, isShape],
}

/** Whether received data has the form of a message, because the other side is untrusted. */
export function isMessage(value: unknown): value is Message {
  return Array.isArray(value) && isId(value[0]) && (FORMS[value[0]]?.every((holds, i) => holds(value[i + 1])) ?? false)
}

const PARTS: Readonly<Record<number, readonly [at: number, name: string]>> = {
  [CALL]: [4, 'args'],
  [ANSWER]: [2, 'result'],
  [ITEM]: [2, 'item'],
  [FAIL]: [2, 'error'],
}

/** Finds a value that cannot cross. `label` is the path and method of the message. */
export function nonPlainPart(message: Message, label: string): string | undefined {
  const part = PARTS[message[0]]
  return part && findNonPlain(message[part[0]], `${label}.${part[1]}`)
}
