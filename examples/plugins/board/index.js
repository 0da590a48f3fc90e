import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin, Host, schema } from '@svc/core'
import { Conversations, Routes, Workflows } from '@svc/core/contracts'
import { recentItems } from './items.js'
import { renderHead, renderItems } from './page.js'

/** @typedef {import('@svc/core').CallContext} CallContext */
/** @typedef {import('@svc/core/contracts').Route} Route */
/** @typedef {(ctx: CallContext) => Promise<import('./items.js').Items>} Load */

/** @type {import('@svc/core').Schema<{ items: number, refresh_s: number, updates: number }>} */
const config = schema({
  type: 'object',
  additionalProperties: false,
  properties: {
    items: { type: 'integer', minimum: 1, maximum: 100, default: 20, description: 'Rows of each table' },
    refresh_s: { type: 'number', minimum: 0.1, default: 5, description: 'Seconds between updates of the live page' },
    updates: { type: 'integer', minimum: 1, default: 1000, description: 'Updates until the live page must be loaded again' },
  },
})

const HTML = 'text/html; charset=utf-8'
const FRESH = { 'cache-control': 'no-store' }
const TABLE = { type: 'array', items: { type: 'object' } }

/** @type {(load: Load) => Route} */
const itemsRoute = load => ({
  method: 'GET',
  path: '/board/items',
  summary: 'Return recent conversations and runs of the caller',
  scope: 'read',
  responses: {
    200: {
      description: 'The items',
      schema: {
        type: 'object',
        properties: { conversations: TABLE, runs: TABLE },
        required: ['conversations', 'runs'],
      },
    },
  },
  handle: async (_, ctx) => ({ body: await load(ctx), headers: FRESH }),
})

/** @type {(load: Load, seconds: number) => Route} */
const pageRoute = (load, seconds) => ({
  method: 'GET',
  path: '/board',
  summary: 'Show recent conversations and runs of the caller',
  scope: 'read',
  responses: { 200: { description: 'The page', contentType: HTML } },
  async handle(_, ctx) {
    const text = renderHead(seconds) + renderItems(await load(ctx), new Date(), false)
    return { headers: { ...FRESH, 'content-type': HTML }, text }
  },
})

/** @type {(load: Load, seconds: number, updates: number, closing: AbortSignal) => Route} */
const liveRoute = (load, seconds, updates, closing) => ({
  method: 'GET',
  path: '/board/live',
  summary: 'Show recent conversations and runs of the caller, and update them',
  scope: 'read',
  streams: HTML,
  endless: true,
  responses: { 200: { description: 'The page', contentType: HTML } },
  async *stream(_, ctx) {
    yield renderHead(seconds) + renderItems(await load(ctx), new Date(), true)
    const signal = AbortSignal.any([ctx.signal, closing])
    // A browser keeps the whole response, so it ends at some time.
    for (let count = 1; count < updates; count++) {
      const isOver = await sleep(seconds * 1000, false, { signal }).catch(() => true)
      if (isOver) return
      yield renderItems(await load(ctx), new Date(), true)
    }
  },
})

export default definePlugin({
  section: 'board',
  config,
  requires: { conversations: Conversations, workflows: Workflows },
  setup(scope, given) {
    const { items, refresh_s: seconds, updates } = scope.config
    /** @type {Load} */
    const load = ctx => recentItems(given, items, ctx)
    // An open page would delay a reload and the end of the server: stage 0 waits for requests.
    const closing = new AbortController()
    scope.tap(Host.hooks.closing, async () => closing.abort(), { stage: -1 })
    scope.add(Routes, 'board', pageRoute(load, seconds))
    scope.add(Routes, 'board_live', liveRoute(load, seconds, updates, closing.signal))
    scope.add(Routes, 'board_items', itemsRoute(load))
  },
})
