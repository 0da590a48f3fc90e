import { execFileSync } from 'node:child_process'
import { AxeBuilder } from '@axe-core/playwright'
import { expect } from 'chai'
import { type Browser, type BrowserContext, chromium, type Page, type Request } from 'playwright-core'
import { chromiumPath } from '../../support/needs.ts'
import { expectListed } from './listed-paths.ts'

const WORDS =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage'
/** There is no internet: whatever is not this machine has no address. */
const OFFLINE = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'
/** The arguments of Chromium. */
export const FLAGS: readonly string[] = [...WORDS.split(' '), OFFLINE]

/** Builds the page, if its sources have changed. */
export const buildPage = (): void => void execFileSync(process.execPath, ['scripts/console.mjs'], { stdio: 'ignore' })

export function openBrowser(): Promise<Browser> {
  buildPage()
  return chromium.launch({ executablePath: chromiumPath()!, args: [...FLAGS] })
}

/** An element that does not appear within this time fails its test, with its name. */
const WAIT_MS = 40_000

/** A page, and all that must not happen on it. Its end fails if it has asked for a path that the API does not have. */
export interface Console extends AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  /** Requests to other servers, violations of the policy, and errors of scripts. Refused requests are none. */
  readonly problems: string[]
  /** Paths of the requests. */
  readonly requests: string[]
}

export interface ConsoleOptions {
  readonly theme?: 'light' | 'dark'
  readonly width?: number
}

export async function openConsole(
  browser: Browser,
  url: string,
  { theme = 'light', width = 1280 }: ConsoleOptions = {}
): Promise<Console> {
  const context = await browser.newContext({ colorScheme: theme, viewport: { width, height: 800 } })
  const page = await context.newPage()
  page.setDefaultTimeout(WAIT_MS)
  const problems: string[] = []
  const requests: string[] = []
  const paths: string[] = []
  const { origin } = new URL(url)
  await page.addInitScript(
    "document.addEventListener('securitypolicyviolation', e => console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI))"
  )
  page.on('request', request => {
    const at = new URL(request.url())
    if (at.origin !== origin && at.protocol.startsWith('http')) problems.push(`request to ${request.url()}`)
    requests.push(`${request.method()} ${at.pathname}`)
    if (at.origin === origin && isOfPage(request)) paths.push(at.pathname)
  })
  page.on('pageerror', error => problems.push(error.message))
  page.on('console', message => {
    // the browser reports each response with an error, and each broken connection
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) problems.push(message.text())
  })
  await page.goto(url)
  return {
    page,
    context,
    problems,
    requests,
    async [Symbol.asyncDispose]() {
      try {
        await expectListed(page, paths)
      } finally {
        await context.close()
      }
    },
  }
}

/** Whether the console itself asks. Frames of plugins ask for what they want, and get nothing. */
function isOfPage(request: Request): boolean {
  if (request.isNavigationRequest()) return false
  return request.frame() === request.frame().page().mainFrame()
}

/** Fails with each rule of WCAG 2.2 AA that the page breaks, and where. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'])
    .analyze()
  const broken = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target.join(' ')} ${failureSummary}`).join('; ')}`
  )
  expect(broken, what).to.deep.equal([])
}
