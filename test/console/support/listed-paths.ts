import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Page } from 'playwright-core'

/** The page itself: its files, and the frame of MCP Apps. Its pages and the frames of plugins are navigated to, not asked for. */
const OF_CONSOLE = /^\/(console\/(files\/[\w-]+\.(js|css|svg|woff2)|frames\/app\.html)|favicon\.ico)$/

const patternOf = (path: string) => new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`)

/** The paths of the curated server, as its typed client has them. */
const CURATED = [...readFileSync('client/src/api.ts', 'utf8').matchAll(/^ {4}"(\/[^"]*)": \{$/gm)].map(([, path]) =>
  patternOf(path!)
)

/** Those of this server, which can have further plugins. The page reads them, signed in as its user. */
const OF_SERVER =
  "fetch('/openapi.json').then(response => response.json()).then(({ paths }) => Object.keys(paths)).catch(() => [])"

const placeOf = (path: string) => path.split('/')[1]
/** Views ask what their plugin declares: below its routes, and never below those of svc. */
const isOfPlugin = (path: string, listed: string) => placeOf(path) !== 'api' && placeOf(path) === placeOf(listed)

/** Fails with each path that the page has asked for although the API does not have it: the console has no API of its own. */
export async function expectListed(page: Page, asked: readonly string[]): Promise<void> {
  const left = asked.filter(path => ![OF_CONSOLE, ...CURATED].some(pattern => pattern.test(path)))
  if (left.length === 0) return
  const own = await page.evaluate<string[]>(OF_SERVER).catch(() => [])
  const unlisted = left.filter(path => !own.some(listed => patternOf(listed).test(path) || isOfPlugin(path, listed)))
  expect([...new Set(unlisted)], 'paths that the OpenAPI document does not list').to.deep.equal([])
}
