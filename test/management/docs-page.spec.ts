import { AxeBuilder } from '@axe-core/playwright'
import { expect } from 'chai'
import { type Browser, chromium } from 'playwright-core'
import { chromiumPath, describeWith } from '../support/needs.ts'
import { startService } from '../support/service.ts'

const FLAGS =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage'
const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

describeWith('chromium', 'the page /docs for a reader with a screen reader or a keyboard', function () {
  this.timeout(240_000)
  let browser: Browser

  before(async () => {
    browser = await chromium.launch({ executablePath: chromiumPath()!, args: FLAGS.split(' ') })
  })
  after(() => browser?.close())

  it('has no violation of WCAG 2.2 AA that axe can find, light and dark, wide and narrow', async () => {
    await using service = await startService()
    const found: string[] = []
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1280, 360]) {
        // axe is a script that the policy of the page refuses
        const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true })
        const page = await context.newPage()
        page.setDefaultTimeout(100_000)
        const look = async (state: string) => {
          const { violations } = await new AxeBuilder({ page }).withTags(WCAG).analyze()
          found.push(
            ...violations.map(({ id, nodes }) => `${colorScheme} ${width} ${state}: ${id} ${nodes[0]?.html.slice(0, 200)}`)
          )
        }
        await page.goto(`${service.url}/docs`)
        await page.getByRole('heading', { name: 'Agent Service' }).waitFor()
        await page
          .getByRole('button', { name: /Test Request/ })
          .first()
          .waitFor()
        await look('the page')
        if (width > 1000) {
          await page.getByText('List modes', { exact: true }).first().click()
          await page.getByRole('button', { name: /Test Request.*get \/api\/v1\/modes/ }).click()
          await page.getByRole('button', { name: /^Send/ }).first().waitFor()
          await look('a request')
        }
        await context.close()
      }
    expect(found).to.deep.equal([])
  })
})
