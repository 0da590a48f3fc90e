import type { Browser } from 'playwright-core'
import { type Console, type ConsoleOptions, openBrowser, openConsole } from './browser.ts'
import { type CuratedHost, openOutside, type Outside, startCurated } from './page-plugins.ts'

/** The console, signed in. */
export interface SignedIn extends Console {
  readonly token: string
}

/** A server in this process with plugins of a test, a server outside, and a browser. */
export interface CuratedConsole extends AsyncDisposable {
  readonly browser: Browser
  readonly service: CuratedHost
  readonly outside: Outside
  /** The console at a page, signed in with a token of these scopes, or with another. */
  readonly signIn: (path: string, scopes: string, options?: ConsoleOptions & { readonly token?: string }) => Promise<SignedIn>
  /** Sends a request as a person with these scopes. */
  readonly ask: (request: string, scopes: string, body?: object) => Promise<Response>
}

/** Starts them. `pluginsIn` writes the plugins into the home, and returns their folders. */
export async function openCurated(
  pluginsIn: (home: string, outside: Outside) => Promise<readonly string[]>,
  config?: object
): Promise<CuratedConsole> {
  await using ends = new AsyncDisposableStack()
  const browser = await openBrowser()
  ends.defer(() => browser.close())
  const outside = ends.use(await openOutside())
  const service = ends.use(await startCurated(home => pluginsIn(home, outside), config))
  const tokens = new Map<string, string>()
  const tokenOf = async (scopes: string) => {
    const token = tokens.get(scopes) ?? (await service.person(scopes.split(','))).token
    tokens.set(scopes, token)
    return token
  }
  const end = ends.move()
  return {
    browser,
    service,
    outside,
    async signIn(path, scopes, { token, ...options } = {}) {
      const own = token ?? (await tokenOf(scopes))
      const view = await openConsole(browser, `${service.url}/console/${path}`, options)
      await view.page.getByLabel('Key or token').fill(own)
      await view.page.keyboard.press('Enter')
      return { ...view, token: own }
    },
    async ask(request, scopes, body) {
      const [method = 'GET', path = ''] = request.split(' ')
      const headers = { authorization: `Bearer ${await tokenOf(scopes)}`, ...(body && { 'content-type': 'application/json' }) }
      return fetch(`${service.url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    },
    [Symbol.asyncDispose]: () => end.disposeAsync(),
  }
}
