import { expect } from 'chai'
import type { Frame, Page } from 'playwright-core'
import { until } from '../../support/wait.ts'
import { type CuratedConsole, openCurated, type SignedIn } from './curated-console.ts'
import { type CuratedHost, writePagePlugin } from './page-plugins.ts'

/** What the hostile page declares. The last ones it never gets: they give credentials, or change plugins. */
const RIGHTS = [
  'GET /hostile/things',
  'POST /hostile/things',
  'GET /api/v1/tokens',
  'POST /api/v1/tokens',
  'POST /api/v1/plugins/plans',
  'DELETE /api/v1/console/session',
]

export const READ = 'read'
export const ALL = 'read,tools,admin'

interface OpenPage extends SignedIn {
  readonly frame: Frame
}

/** A server with a hostile and an honest plugin, a server outside, and a browser. */
export interface HostilePages extends Omit<CuratedConsole, 'signIn'> {
  /** The console on a page of a plugin, signed in with these scopes. */
  readonly signIn: (name: string, scopes: string, width?: number, token?: string) => Promise<SignedIn>
  /** The same, and the frame of the page. */
  readonly openPage: (name?: string, scopes?: string, width?: number, token?: string) => Promise<OpenPage>
}

export async function openHostilePages(): Promise<HostilePages> {
  const curated = await openCurated(async home => [
    await writePagePlugin(home, 'hostile', RIGHTS),
    await writePagePlugin(home, 'honest', ['GET /honest/things']),
  ])
  const signIn: HostilePages['signIn'] = (name, scopes, width = 1280, token) =>
    curated.signIn(`pages/${name}`, scopes, { width, ...(token !== undefined && { token }) })
  const openPage: HostilePages['openPage'] = async (name = 'hostile', scopes = ALL, width, token) => {
    const view = await signIn(name, scopes, width, token)
    return { ...view, frame: await frameOf(view.page) }
  }
  return { ...curated, signIn, openPage }
}

/** The frame of the page, when it has started. */
export async function frameOf(page: Page): Promise<Frame> {
  await page.locator('.frame-place:not(.frame-hidden) iframe').waitFor({ timeout: 60_000 })
  const frame = await (await page.locator('iframe').elementHandle())!.contentFrame()
  // the policy of the frame does not let the browser ask again by itself
  await until(
    () => frame!.evaluate<boolean>('window.svc !== undefined'),
    isThere => isThere
  )
  return frame!
}

/** The pointer of the reader moves over the frame, which then gets clicks. */
export async function moveIntoFrame(page: Page): Promise<void> {
  const { x, y, width, height } = (await page.locator('iframe').boundingBox())!
  await page.mouse.move(x + width / 2, y + height / 2)
  await page.mouse.move(x + width / 2 + 3, y + height / 2 + 3)
}

/** The console still works. */
export async function expectUsable(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Overview', exact: true }).click()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
}

interface Answer {
  readonly result?: { readonly status: number; readonly body: unknown }
  readonly error?: { readonly code: number; readonly message: string; readonly data: { readonly code?: string } }
}

/** Calls a method of the console, as the page of a plugin does. */
export const call = (frame: Frame, method: string, params: object): Promise<Answer> =>
  frame.evaluate<Answer>(
    `new Promise(resolve => {
      const id = 'test-' + Math.random()
      addEventListener('message', ({ data }) => data.id === id && resolve(data))
      parent.postMessage({ jsonrpc: '2.0', id, method: ${JSON.stringify(method)}, params: ${JSON.stringify(params)} }, '*')
    })`
  )

/** How each of these attacks ends: with what it has got, or with the name of its error. */
export async function tryAll(frame: Frame, attacks: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const ends: Record<string, string> = {}
  for (const [name, attack] of Object.entries(attacks))
    ends[name] = await frame.evaluate<string>(`(async () => {
      // the inspector may evaluate text, and nothing that runs later may
      await new Promise(resolve => setTimeout(resolve))
      try {
        const late = new Promise(resolve => setTimeout(() => resolve('nothing'), 700))
        return 'got ' + String(await Promise.race([(async () => ${attack})(), late])).slice(0, 200)
      } catch (error) { return error.name }
    })()`)
  return ends
}

export const expectAtHome = (page: Page, { url }: CuratedHost): void => {
  expect(page.url()).to.match(new RegExp(`^${url}/console/`))
}
