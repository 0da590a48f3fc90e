import assert from 'node:assert/strict'
import type { JsonSchema } from '@svc/core'
import {
  type Json,
  type Route,
  ROUTE_HEADERS,
  type RouteReply,
  type RouteStreamHead,
  type RouteStreamItem,
} from '@svc/core/contracts'
import { abortable, assertPlain, caseMaker, compileSchema, frozen, type KitCase, skipped } from './kit-case.ts'
import { generateMatching, settledOutcome } from './made-up.ts'
import type { RouteSample } from './plugin-package.ts'
import type { ItemUnderTest } from './plugin-host.ts'

/** Number of items to read of a stream. */
const ITEMS = 20

const MADE_UP = 'answers made-up requests, or fails in words'

/** Cases for a route: its description, generated requests if it only reads, and the requests of its author. */
export function routeCases({ name, seen, options, permissions, open }: ItemUnderTest<Route>): KitCase[] {
  const make = caseMaker(open)
  const samples = options.routes?.[name] ?? []
  const isAlone = (permissions.network?.length ?? 0) === 0
  return [
    make('has a path, a summary, and either an answer or a stream', async ({ item }) => {
      assert.match(item.path, /^\/[\w\-./:]*(?:\*\w+)?$/)
      assert.ok(item.summary.trim() !== '', 'it has no summary')
      assert.notEqual(item.handle === undefined, item.stream === undefined, 'a route has `handle` or `stream`, never both')
      for (const json of [item.query, item.body]) if (json !== undefined) compileSchema(json, 'its schema')
    }),
    seen.method === 'GET' && isAlone
      ? make(MADE_UP, async ({ item }) => {
          for (const query of generateMatching(item.query ?? { type: 'object' }, options))
            await ask(item, { query: textsOf(query) })
        })
      : skipped(MADE_UP, seen.method === 'GET' ? 'a route without network' : 'a method that only reads (GET)'),
    samples.length > 0
      ? make('answers the sample requests', async ({ item }) => {
          for (const sample of samples) {
            const answer = await ask(item, sample)
            assert.notEqual(answer, undefined, `${JSON.stringify(sample)} failed`)
            sample.expect?.(answer!)
          }
        })
      : skipped('answers the sample requests', 'samples of it in test/samples'),
  ]
}

/** The bytes of a body, for a sample without `rawBody`. */
const rawOf = (body: Json | undefined) =>
  new TextEncoder().encode(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body))

/** Query values are text. */
const textsOf = (query: Json) =>
  Object.fromEntries(Object.entries(Object(query) as object).map(([key, value]) => [key, String(value)]))

async function ask(route: Route, { expect: _expect, ...given }: RouteSample): Promise<Json | string | undefined> {
  const params = Object.fromEntries([...route.path.matchAll(/[:*](\w+)/g)].map(([, key]) => [key, 'sample']))
  const rawBody = route.rawBody ? { rawBody: rawOf(given.body) } : {}
  const request = frozen({ params, query: {}, headers: {}, body: undefined, ...rawBody, ...given })
  const what = `${route.method} ${route.path} ${JSON.stringify(given)}`
  if (route.stream) return (await settledOutcome(read(route, route.stream(request, abortable().ctx)), what)).value
  const { value } = await settledOutcome(route.handle!(request, abortable().ctx), what)
  if (value === undefined) return undefined
  assertPlain(value, 'reply')
  return contentOf(route, value) ?? ''
}

/** For an isolated plugin the server removes other headers, so its author should know. */
function checkHeaders(headers: RouteReply['headers'] = {}): void {
  const { isolated, prefix, api, apiPrefixes } = ROUTE_HEADERS
  const [allowed, prefixes] = [
    [...isolated, ...api],
    [prefix, ...apiPrefixes],
  ]
  const names = Object.keys(headers).map(name => name.toLowerCase())
  const refused = names.filter(name => !allowed.includes(name) && !prefixes.some(one => name.startsWith(one)))
  const hint = `a plugin in a process of its own may set: ${allowed.join(', ')}, ${prefixes.map(one => `${one}*`).join(', ')}`
  assert.deepEqual(refused, [], `its answer has headers that the server leaves out: ${refused.join(', ')}; ${hint}`)
}

function checkBody({ responses }: Route, status: number, body: unknown): void {
  const schema: JsonSchema | undefined = responses?.[status]?.schema
  if (schema === undefined || body === undefined) return
  const check = compileSchema(schema, `responses.${status}`)
  assert.ok(check(structuredClone(body)), `its answer breaks its own schema: ${JSON.stringify(check.errors)}`)
}

/** Reads a stream to its end or for a while: text, or the data of a reply that is the whole response. */
async function read(route: Route, stream: AsyncIterable<RouteStreamItem>): Promise<Json> {
  const decoder = new TextDecoder()
  let text = ''
  let count = 0
  for await (const item of stream) {
    if (isReply(item)) {
      assert.equal(count, 0, 'only the first item of a stream can be a reply')
      const content = contentOf(route, item)
      if (content !== undefined) return content
    } else text += typeof item === 'string' ? item : decoder.decode(item, { stream: true })
    if (++count === ITEMS) break
  }
  return text
}

const isReply = (item: RouteStreamItem): item is RouteReply | RouteStreamHead =>
  typeof item === 'object' && !(item instanceof Uint8Array)

/** Checks a reply and returns its data or text. */
function contentOf(route: Route, { status = 200, headers, body, text, bytes }: RouteReply & RouteStreamHead): Json | undefined {
  checkHeaders(headers)
  checkBody(route, status, body)
  return (body as Json | undefined) ?? text ?? (bytes && new TextDecoder().decode(bytes))
}
