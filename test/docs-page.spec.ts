import { expect } from 'chai'
import { type Browser, chromium, type Page } from 'playwright-core'
import { startService } from './support/service.ts'
import { chromiumPath, describeWith } from './support/needs.ts'

const FLAGS =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage'
/** There is no internet: whatever is not this machine has no address. */
const OFFLINE = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'

/** A page, and all that went wrong on it or was asked of others. */
async function open(browser: Browser, url: string): Promise<{ page: Page; requests: string[]; faults: string[] }> {
  const page = await browser.newPage()
  const requests: string[] = []
  const problems: string[] = []
  page.on('request', request => requests.push(request.url()))
  page.on('pageerror', error => problems.push(error.message))
  page.on('console', message => message.type() === 'error' && problems.push(message.text()))
  await page.goto(`${url}/docs`)
  return { page, requests, faults: problems }
}

describeWith('chromium', 'the page /docs in a browser without internet', function () {
  this.timeout(60_000)
  let browser: Browser

  before(async () => {
    browser = await chromium.launch({ executablePath: chromiumPath()!, args: [...FLAGS.split(' '), OFFLINE] })
  })
  after(() => browser?.close())

  it('shows every route, tries one out, and sends requests to its own server only', async () => {
    await using service = await startService()
    const { page, requests, faults: problems } = await open(browser, service.url)
    await page.getByRole('heading', { name: 'Agent Service' }).waitFor()
    const { paths } = (await (await fetch(`${service.url}/openapi.json`)).json()) as { paths: Record<string, { get?: object }> }
    const menu = page.getByRole('navigation').or(page.getByRole('complementary')).first()
    for (const item of Object.values(paths).flatMap(methods => Object.values(methods) as { summary: string }[]))
      await menu.getByText(item.summary, { exact: true }).first().waitFor()

    await menu.getByText('List modes', { exact: true }).click()
    await page.getByRole('button', { name: /Test Request.*get \/api\/v1\/modes/ }).click()
    const answer = page.waitForResponse(`${service.url}/api/v1/modes`)
    await page.getByRole('button', { name: /^Send/ }).first().click()
    expect((await answer).status()).to.equal(200)
    await page.getByText('200 OK').first().waitFor()
    await page.getByText('"Do the work: all tools."').first().waitFor()

    expect(requests.filter(url => !url.startsWith(`${service.url}/`) && !/^(data|blob):/.test(url))).to.deep.equal([])
    expect(problems).to.deep.equal([])
  })
})
