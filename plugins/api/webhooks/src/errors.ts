import { messageOf, svcError } from '@svc/core'

const clip = (text: string) => text.slice(0, 100)

/** HTTP clients get 404. */
export const webhookUnknown = (value: string) =>
  svcError('INVALID_VALUE', `there is no webhook "${clip(value)}"`, {
    details: { field: 'id', value: clip(value), reason: 'not found' },
  })

export const deliveryUnknown = (value: string) =>
  svcError('INVALID_VALUE', `this webhook has no delivery "${clip(value)}"`, {
    details: { field: 'delivery', value: clip(value), reason: 'not found' },
  })

export const deliveryState = (state: string) =>
  svcError('INVALID_VALUE', `the delivery is ${state}; only a failed or cancelled one can be retried`, {
    details: { field: 'delivery', reason: `is ${state}` },
  })

export const tooMany = (most: number) =>
  svcError('INVALID_VALUE', `there are ${most} webhooks already; remove one first`, {
    details: { field: 'url', reason: `more than ${most} webhooks`, limit: most },
  })

export const urlInvalid = (reason: string) => svcError('INVALID_VALUE', `url ${reason}`, { details: { field: 'url', reason } })

/** No event has this type, but one that differs by a typing error. */
export const typeUnknown = (value: string, meant: string) =>
  svcError('INVALID_VALUE', `no event has the type "${clip(value)}": did you mean "${meant}"?`, {
    details: { field: 'types', value: clip(value), reason: `did you mean "${meant}"?` },
    hint: `Write ${meant}, or a type of docs/reference/events.md`,
  })

/** Without a key, the secret that signs deliveries cannot be kept. */
export const keyMissing = (cause: unknown) =>
  svcError(
    'UNAVAILABLE',
    `the server cannot store the key that signs webhooks: ${messageOf(cause)}; set secrets.key_file or SVC_SECRETS_KEY`,
    {
      cause,
      details: { retryable: false },
      hint: 'Set secrets.key_file or SVC_SECRETS_KEY. `openssl rand -base64 32` creates a key. See docs/guides/keep-a-secret.md',
    }
  )

/** The receiver answered, but not with success. */
export const refused = (status: number, retryable: boolean) =>
  svcError('WEBHOOK_REFUSED', `the receiver answered with the status ${status}`, { details: { status, retryable } })

/** The receiver could not be reached, or must not be. */
export const unreachable = (code: string, message: string, retryable: boolean) =>
  svcError('WEBHOOK_UNREACHABLE', message, { details: { reason: code, retryable } })

export const serverNone = () =>
  svcError('SERVER_NONE', 'only a running server has webhooks, and no server runs from this svc home', {
    hint: 'Start it with `svc serve`, or name one with --url',
  })
