import { TYPE_PATTERN } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { Json, JobState, Route } from '@svc/core/contracts'
import type { Deliveries, DeliveriesPage } from './deliveries.ts'
import { typeUnknown, urlInvalid } from './errors.ts'
import { meantType } from './event-types.ts'
import type { Webhook, Webhooks, WebhookSettings } from './webhooks.ts'

const PATH = '/api/v1/webhooks'
const [PAGE, MOST_LISTED] = [20, 50]
const STATES = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const satisfies readonly JobState[]

const text = (description: string): JsonSchema => ({ type: 'string', description })
const closed = (properties: { readonly [name: string]: JsonSchema }, required: readonly string[] = []): JsonSchema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})
const open = (properties: { readonly [name: string]: JsonSchema }, title?: string): JsonSchema => ({
  ...(title === undefined ? {} : { title }),
  type: 'object',
  properties,
  required: Object.keys(properties),
})
const NO_QUERY = closed({})
const TIME: JsonSchema = { type: ['string', 'null'], format: 'date-time' }

const SETTINGS = {
  url: { type: 'string', minLength: 1, maxLength: 2_000, description: 'Receives a POST for each event: http or https.' },
  name: { type: 'string', maxLength: 100, description: 'Name shown in lists.' },
  types: {
    type: 'array',
    maxItems: 50,
    items: {
      type: 'string',
      pattern: `^(?:${TYPE_PATTERN})$`,
      patternHint: 'must be a type of events, such as turn_completed or run_*',
    },
    description: 'Types of events; `turn_*` selects all that begin with `turn_`. Default: all.',
  },
  enabled: { type: 'boolean', description: 'Whether events are delivered. Default: true.' },
} as const satisfies { readonly [name: string]: JsonSchema }

const WEBHOOK: JsonSchema = open(
  {
    id: text('The id.'),
    name: text('The name; empty without one.'),
    url: text('The receiver.'),
    types: { type: 'array', items: { type: 'string' }, description: 'Types of events. Empty: all.' },
    enabled: { type: 'boolean' },
    disabled_reason: { type: ['string', 'null'], description: 'Why svc disabled it, such as the answer 410 Gone.' },
    created_at: { type: 'string', format: 'date-time' },
    updated_at: { type: 'string', format: 'date-time' },
  },
  'Webhook'
)
const SECRET: JsonSchema = text('The secret that signs deliveries, `whsec_…`. It is shown only here.')
const DELIVERY: JsonSchema = open(
  {
    id: text('The id of the delivery: that of its job.'),
    event_id: text('The id of the event, sent as webhook-id.'),
    event_type: text('The type of the event.'),
    state: { type: 'string', enum: STATES, description: 'A failed delivery is a dead letter.' },
    attempts: { type: 'integer' },
    max_attempts: { type: 'integer' },
    created_at: TIME,
    next_attempt_at: { ...TIME, description: 'For a queued delivery.' },
    finished_at: TIME,
    error: { type: ['string', 'null'], description: 'Why the last attempt failed.' },
  },
  'WebhookDelivery'
)

const responds = (description: string, schema: JsonSchema, status = '200') => ({ [status]: { description, schema } })

/** The routes of webhooks. */
export function createRoutes(webhooks: Webhooks, deliveries: Deliveries): Record<string, Route> {
  return { ...readRoutes(webhooks), ...changeRoutes(webhooks), ...deliveryRoutes(deliveries) }
}

const readRoutes = (webhooks: Webhooks): Record<string, Route> => ({
  webhooks: {
    method: 'GET',
    path: PATH,
    summary: 'List the webhooks',
    scope: 'admin',
    query: NO_QUERY,
    responses: responds('The webhooks, oldest first.', open({ webhooks: { type: 'array', items: WEBHOOK } })),
    handle: async (_request, ctx) => ({ body: { webhooks: (await webhooks.all(ctx)).map(shown) } }),
  },
  webhook: {
    method: 'GET',
    path: `${PATH}/:id`,
    summary: 'Read a webhook',
    scope: 'admin',
    query: NO_QUERY,
    responses: responds('The webhook.', WEBHOOK),
    handle: async ({ params }, ctx) => ({ body: shown(await webhooks.get(params.id!, ctx)) }),
  },
})

const changeRoutes = (webhooks: Webhooks): Record<string, Route> => ({
  webhook_add: {
    method: 'POST',
    path: PATH,
    summary: 'Add a webhook',
    scope: 'admin',
    query: NO_QUERY,
    body: closed(SETTINGS, ['url']),
    responses: responds('The webhook and its secret.', open({ webhook: WEBHOOK, secret: SECRET }), '201'),
    async handle({ body }, ctx) {
      const {
        url,
        name = '',
        types = [],
        enabled = true,
      } = body as unknown as Partial<WebhookSettings> & { readonly url: string }
      const { webhook, secret } = await webhooks.add({ url: urlOf(url), name, types: typesOf(types), enabled }, ctx)
      return { status: 201, body: { webhook: shown(webhook), secret } }
    },
  },
  webhook_change: {
    method: 'PATCH',
    path: `${PATH}/:id`,
    summary: 'Change a webhook, or its secret',
    scope: 'admin',
    query: NO_QUERY,
    body: closed({
      ...SETTINGS,
      rotate_secret: { type: 'boolean', description: 'Makes a new secret. The former one signs too for 24 hours.' },
    }),
    responses: responds('The webhook; with `rotate_secret` also its new secret.', {
      type: 'object',
      properties: { webhook: WEBHOOK, secret: SECRET },
      required: ['webhook'],
    }),
    async handle({ params, body }, ctx) {
      const { rotate_secret: rotate = false, ...given } = body as Partial<WebhookSettings> & { readonly rotate_secret?: boolean }
      const settings = {
        ...given,
        ...(given.url === undefined ? {} : { url: urlOf(given.url) }),
        ...(given.types === undefined ? {} : { types: typesOf(given.types) }),
      }
      const { webhook, secret } = await webhooks.change(params.id!, { ...settings, rotate }, ctx)
      return { body: { webhook: shown(webhook), ...(secret === undefined ? {} : { secret }) } }
    },
  },
  webhook_remove: {
    method: 'DELETE',
    path: `${PATH}/:id`,
    summary: 'Remove a webhook, and skip its queued deliveries',
    scope: 'admin',
    query: NO_QUERY,
    responses: responds('The webhook is removed.', open({ success: { type: 'boolean' } })),
    async handle({ params }, ctx) {
      await webhooks.remove(params.id!, ctx)
      return { body: { success: true } }
    },
  },
})

const deliveryRoutes = (deliveries: Deliveries): Record<string, Route> => ({
  webhook_test: {
    method: 'POST',
    path: `${PATH}/:id/test`,
    summary: 'Send a test event to a webhook',
    description: 'Sends `svc.webhook_test` at once, without retries, also to a disabled webhook.',
    scope: 'admin',
    query: NO_QUERY,
    responses: responds(
      'What the receiver answered.',
      open({
        delivered: { type: 'boolean' },
        status: { type: ['integer', 'null'], description: 'The status of the answer; null without one.' },
        duration_ms: { type: 'integer' },
        error: { type: ['string', 'null'] },
      })
    ),
    async handle({ params }, ctx) {
      const { durationMs, ...result } = await deliveries.test(params.id!, ctx)
      return { body: { ...result, duration_ms: durationMs } }
    },
  },
  webhook_deliveries: {
    method: 'GET',
    path: `${PATH}/:id/deliveries`,
    summary: 'List the deliveries of a webhook, newest first',
    scope: 'admin',
    query: closed({
      state: { type: 'string', enum: STATES, description: 'Only deliveries in this state; `failed` lists the dead letters.' },
      limit: { type: 'integer', minimum: 1, maximum: MOST_LISTED, description: `Maximum entries; default ${PAGE}.` },
      cursor: text('The next_cursor of the previous page.'),
    }),
    responses: responds(
      'A page of deliveries.',
      open({ deliveries: { type: 'array', items: DELIVERY }, next_cursor: { type: ['string', 'null'] } })
    ),
    async handle({ params, query: { state, limit, cursor } }, ctx) {
      const asked = {
        limit: limit === undefined ? PAGE : Number(limit),
        ...(state === undefined ? {} : { state: state as JobState }),
        ...(cursor === undefined ? {} : { cursor }),
      }
      const page = await deliveries.list(params.id!, asked, ctx)
      return { body: { deliveries: page.deliveries.map(deliveryShown), next_cursor: page.next ?? null } }
    },
  },
  webhook_retry: {
    method: 'POST',
    path: `${PATH}/:id/deliveries/:delivery/retry`,
    summary: 'Queue a dead letter again',
    scope: 'admin',
    query: NO_QUERY,
    responses: responds('The delivery, with all its attempts again.', DELIVERY),
    handle: async ({ params }, ctx) => ({ body: deliveryShown(await deliveries.retry(params.id!, params.delivery!, ctx)) }),
  },
})

/** The URL as it is requested. Throws INVALID_VALUE. */
function urlOf(given: string): string {
  if (!URL.canParse(given)) throw urlInvalid('must be an absolute URL')
  const url = new URL(given)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw urlInvalid('must begin with https:// or http://')
  if (url.username !== '' || url.password !== '') throw urlInvalid('must not contain a user or a password')
  url.hash = ''
  return url.href
}

/** The types as they are stored. Throws INVALID_VALUE for a typing error. */
function typesOf(types: readonly string[]): readonly string[] {
  for (const type of types) {
    const meant = meantType(type)
    if (meant !== undefined) throw typeUnknown(type, meant)
  }
  return types
}

const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

const shown = ({ id, name, url, types, enabled, disabledReason, createdAt, updatedAt }: Webhook): Json => ({
  id,
  name,
  url,
  types,
  enabled,
  disabled_reason: disabledReason ?? null,
  created_at: timeOf(createdAt),
  updated_at: timeOf(updatedAt),
})

const deliveryShown = ({ job, event }: DeliveriesPage['deliveries'][number]): Json => ({
  id: job.id,
  event_id: event.id,
  event_type: event.type,
  state: job.state,
  attempts: job.attempts,
  max_attempts: job.maxAttempts,
  created_at: timeOf(job.createdAt),
  next_attempt_at: job.state === 'queued' ? timeOf(job.due) : null,
  finished_at: timeOf(job.finishedAt),
  error: job.error?.message ?? null,
})
