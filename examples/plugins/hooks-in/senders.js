import { createHmac, timingSafeEqual } from 'node:crypto'
import { svcError } from '@svc/core'

/** @typedef {import('@svc/core/contracts').RouteRequest} RouteRequest */

/**
 * A verified event. Both texts identify it: `id` is the id that the sender gave it, `proof` what its signature covers. GitHub does
 * not sign the id of a delivery, so the same body under another id is a replay.
 *
 * @typedef {{ id: string, kind: string, proof: string, body: import('@svc/core/contracts').Json }} HookEvent
 */

/** One error for all reasons, so that a sender learns nothing about the secret. */
export const rejected = () => svcError('AUTHENTICATION_FAILED', 'the signature is missing, invalid or too old')

/** @type {(secret: string, parts: readonly (string | Uint8Array)[]) => Buffer} */
function sign(secret, parts) {
  const hmac = createHmac('sha256', secret)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** Compares in constant time. @type {(expected: Buffer, hex: string) => boolean} */
function isSame(expected, hex) {
  const given = Buffer.from(/^[0-9a-f]{64}$/.test(hex) ? hex : '', 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** An id or a kind: both become part of a key. */
const textOf = (/** @type {unknown} */ value) =>
  typeof value === 'string' && /^[\x21-\x7e]{1,200}$/.test(value) ? value : undefined

/** https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries. @type {(request: RouteRequest, secret: string) => HookEvent} */
export function readGithub({ headers, body, rawBody = new Uint8Array() }, secret) {
  const [, hex = ''] = /^sha256=(.*)$/.exec(headers['x-hub-signature-256'] ?? '') ?? []
  const expected = sign(secret, [rawBody])
  if (!isSame(expected, hex)) throw rejected()
  const [id, kind] = [textOf(headers['x-github-delivery']), textOf(headers['x-github-event'])]
  if (!id || !kind) throw svcError('MISSING_FIELD', 'x-github-delivery and x-github-event are required')
  return { id, kind, proof: hex, body: /** @type {HookEvent['body']} */ (body) }
}

/** https://docs.stripe.com/webhooks/signature. @type {(request: RouteRequest, secret: string, toleranceMs: number) => HookEvent} */
export function readStripe({ headers, body, rawBody = new Uint8Array() }, secret, toleranceMs) {
  const header = headers['stripe-signature'] ?? ''
  if (header.length > 2000) throw rejected()
  const parts = header.split(',').map(part => part.trim().split('='))
  const time = parts.find(([key]) => key === 't')?.[1] ?? ''
  const expected = sign(secret, [`${time}.`, rawBody])
  // While a secret is replaced, Stripe sends one signature for each.
  const isSigned = parts.some(([key, hex = '']) => key === 'v1' && isSame(expected, hex))
  if (!isSigned || !/^\d{1,12}$/.test(time) || Math.abs(Date.now() - Number(time) * 1000) > toleranceMs) throw rejected()
  const { id, type } = /** @type {Record<string, unknown>} */ (body)
  const [eventId, kind] = [textOf(id), textOf(type)]
  if (!eventId || !kind) throw svcError('MISSING_FIELD', 'id and type are required')
  return { id: eventId, kind, proof: eventId, body: /** @type {HookEvent['body']} */ (body) }
}
