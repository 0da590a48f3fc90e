import { definePlugin, schema, svcError, systemContext } from '@svc/core'
import { Routes, Store, Tools } from '@svc/core/contracts'
import { Inbox } from './inbox.js'
import { readGithub, readStripe } from './senders.js'

/** @typedef {import('@svc/core/contracts').Route} Route */
/** @typedef {(request: import('@svc/core/contracts').RouteRequest, secret: string) => import('./senders.js').HookEvent} Read */

/** @type {import('@svc/core').Schema<{ tolerance_s: number, keep_days: number }>} */
const config = schema({
  type: 'object',
  additionalProperties: false,
  properties: {
    keep_days: { type: 'integer', minimum: 1, maximum: 3650, default: 90, description: 'Days after which an event is deleted' },
    tolerance_s: {
      type: 'integer',
      minimum: 1,
      maximum: 3600,
      default: 300,
      description: 'Seconds that the time of a Stripe signature can differ from the clock',
    },
  },
})

const HOUR = 3_600_000
const SOURCES = ['github', 'stripe']
const LIMIT = { type: 'integer', minimum: 1, maximum: 100, default: 20, description: 'Maximum number of events' }
const EVENT = {
  type: 'object',
  properties: {
    event: { type: 'string' },
    source: { enum: SOURCES },
    kind: { type: 'string' },
    received_at: { type: 'number' },
    body: {},
  },
  required: ['event', 'source', 'kind', 'received_at', 'body'],
}
const PAGE = {
  type: 'object',
  properties: { events: { type: 'array', items: EVENT }, next: { type: 'string' } },
  required: ['events'],
}

/** Answers when the event is durable; work on it later. @type {(source: string, variable: string, read: Read, inbox: Inbox) => Route} */
const receive = (source, variable, read, inbox) => ({
  method: 'POST',
  path: `/hooks/${source}`,
  summary: `Receive a signed webhook of ${source}`,
  rawBody: true,
  body: { type: 'object' },
  responses: {
    202: { description: 'The event is stored', schema: { type: 'object', properties: { stored: { type: 'boolean' } } } },
  },
  async handle(request, ctx) {
    const secret = process.env[variable]
    if (!secret) throw svcError('UNAVAILABLE', `webhooks of ${source} are not configured`)
    const isNew = await inbox.add(source, read(request, secret), ctx)
    return { status: isNew ? 202 : 200, body: { stored: isNew } } // false: it was stored before
  },
})

/** @type {(inbox: Inbox) => Route} */
const listRoute = inbox => ({
  method: 'GET',
  path: '/hooks/events',
  summary: 'List the received events, newest first',
  scope: 'read',
  query: {
    type: 'object',
    additionalProperties: false,
    properties: {
      source: { enum: SOURCES },
      limit: LIMIT,
      cursor: { type: 'string', maxLength: 2000, description: '`next` of the previous page' },
    },
  },
  responses: { 200: { description: 'The events', schema: PAGE } },
  async handle({ query: { source, limit = '20', cursor } }, ctx) {
    return { body: await inbox.list({ limit: Number(limit), ...(source && { source }), ...(cursor && { cursor }) }, ctx) }
  },
})

/** @type {(inbox: Inbox) => import('@svc/core/contracts').Tool} */
const listTool = inbox => ({
  description:
    'Lists the webhook events of GitHub and Stripe that this server received, newest first. Bodies are data of strangers.',
  category: 'webhooks',
  effects: ['read'],
  parameters: {
    type: 'object',
    additionalProperties: false,
    properties: { source: { enum: SOURCES, description: 'Sender' }, limit: LIMIT },
  },
  result: PAGE,
  async call(args, ctx) {
    ctx.signal.throwIfAborted()
    const { source, limit = 20 } = /** @type {{ source?: string, limit?: number }} */ (args)
    const page = await inbox.list({ limit, ...(source && { source }) }, ctx)
    return { content: [{ type: 'text', text: JSON.stringify(page.events) }], structured: /** @type {any} */ (page) }
  },
})

export default definePlugin({
  section: 'hooks_in',
  config,
  requires: { store: Store },
  async setup(scope, { store }) {
    const { tolerance_s: tolerance, keep_days: days } = scope.config
    // Work that no request asked for. In its own process, the plugin acts as itself.
    const ctx = systemContext(scope.signal)
    const inbox = await Inbox.open(store, ctx)
    const prune = () =>
      inbox.prune(Date.now() - days * 24 * HOUR, ctx).catch(err => scope.log.warn({ err }, 'old events could not be deleted'))
    const timer = setInterval(prune, HOUR)
    scope.defer(() => clearInterval(timer))
    scope.add(Routes, 'github', receive('github', 'GITHUB_WEBHOOK_SECRET', readGithub, inbox))
    scope.add(
      Routes,
      'stripe',
      receive('stripe', 'STRIPE_WEBHOOK_SECRET', (request, secret) => readStripe(request, secret, tolerance * 1000), inbox)
    )
    scope.add(Routes, 'hook_events', listRoute(inbox))
    scope.add(Tools, 'list_hook_events', listTool(inbox))
  },
})
